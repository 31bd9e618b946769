"""Sitebell: watches booked-out campgrounds and tells the people who asked when a site opens."""
