"""What is made from the code: the generated pages of the documentation, and the picture in README."""
