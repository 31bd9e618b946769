from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update

from chalicelib.accounts import channels
from chalicelib.channels.outcomes import DeliveryErrorCategory, Outcome, OutcomeClass
from chalicelib.db.audit import OPERATOR
from chalicelib.db.tables import notification_channels, user_scans
from chalicelib.db.vault import Vault, new_key
from chalicelib.deps import Deps
from chalicelib.errors import Invalid, NotFound, Unavailable
from tests.support.rows import add_channel, add_scan, add_user, audited, make_request, version_of
from tests.support.standins import World, make_settings, open_connections


def test_a_channel_keeps_its_recipient_encrypted_and_reaches_out_to_nobody(world: World) -> None:
    user_id = add_user(world.deps)
    channel_id = channels.add(world.deps, user_id, "pushover", "u-ann ", by=OPERATOR)
    stored = _credentials(world.deps, channel_id)
    assert stored is not None
    assert "u-ann" not in stored
    assert world.deps.vault.decrypt(stored) == "u-ann"
    assert world.channel.sent == []
    assert ("channel.add", str(channel_id)) in audited(world.deps)


def test_channels_are_listed_oldest_first_and_without_recipients(world: World) -> None:
    user_id = add_user(world.deps)
    first = add_channel(world.deps, user_id)
    world.clock.advance(seconds=1)
    second = add_channel(world.deps, user_id)
    add_channel(world.deps, add_user(world.deps, "bob@example.org"))
    found = channels.of_user(world.deps, user_id)
    assert [channel.id for channel in found] == [first, second]
    assert found[0].enabled
    assert found[0].has_recipient
    assert "u-ann" not in str([channel.to_json() for channel in found])


def test_an_unknown_kind_is_refused(world: World) -> None:
    with pytest.raises(Invalid, match="pushover") as refused:
        channels.add(world.deps, add_user(world.deps), "pigeon", "u-ann", by=OPERATOR)
    assert refused.value.field == "kind"


def test_a_recipient_that_cannot_be_is_refused_and_not_repeated(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        channels.add(world.deps, add_user(world.deps), "pushover", "hunter2", by=OPERATOR)
    assert refused.value.field == "recipient"
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_channel_for_nobody_is_refused(world: World) -> None:
    with pytest.raises(NotFound):
        channels.add(world.deps, uuid4(), "pushover", "u-ann", by=OPERATOR)


# --- A6: the first working channel counts as a change ----------------------------------------------------------------


def test_the_first_working_channel_renews_a_persons_scans_and_the_second_does_not(world: World) -> None:
    user_id = add_user(world.deps)
    scan_id = add_scan(world.deps, user_id)
    other = add_scan(world.deps, add_user(world.deps, "bob@example.org"))
    add_channel(world.deps, user_id)
    assert version_of(world.deps, scan_id) == 2
    add_channel(world.deps, user_id)
    assert version_of(world.deps, scan_id) == 2
    assert version_of(world.deps, other) == 1


def test_enabling_the_only_channel_again_renews_scans_and_clears_its_refusals(world: World) -> None:
    user_id = add_user(world.deps)
    channel_id = add_channel(world.deps, user_id)
    scan_id = add_scan(world.deps, user_id)
    _disable(world.deps, channel_id)
    channels.enable(world.deps, channel_id, by=user_id)
    channels.enable(world.deps, channel_id, by=user_id)
    assert version_of(world.deps, scan_id) == 2
    assert channels.of_user(world.deps, user_id)[0].disabled_reason is None
    assert ("channel.enable", str(channel_id)) not in audited(world.deps)  # a person's own change


def test_enabling_a_second_channel_renews_only_the_scans_that_named_it(world: World) -> None:
    user_id = add_user(world.deps)
    add_channel(world.deps, user_id)
    world.clock.advance(seconds=1)
    second = add_channel(world.deps, user_id)
    any_channel = add_scan(world.deps, user_id)
    its_own = add_scan(world.deps, user_id, replace(make_request(mode="direct"), channel_id=second))
    _disable(world.deps, second)
    channels.enable(world.deps, second, by=user_id)
    assert version_of(world.deps, any_channel) == 1
    assert version_of(world.deps, its_own) == 2


def test_removing_a_broken_channel_renews_scans_that_fall_back_to_a_working_one(world: World) -> None:
    user_id = add_user(world.deps)
    add_channel(world.deps, user_id)
    broken = add_channel(world.deps, user_id)
    scan_id = add_scan(world.deps, user_id, replace(make_request(), channel_id=broken))
    _disable(world.deps, broken)
    channels.remove(world.deps, broken, by=user_id)
    assert version_of(world.deps, scan_id) == 2
    with world.deps.database.reading() as connection:
        assert connection.execute(select(user_scans.c.channel_id)).scalar_one() is None


def test_removing_the_only_channel_renews_nothing(world: World) -> None:
    user_id = add_user(world.deps)
    channel_id = add_channel(world.deps, user_id)
    scan_id = add_scan(world.deps, user_id)
    channels.remove(world.deps, channel_id, by=OPERATOR)
    assert version_of(world.deps, scan_id) == 1
    assert channels.of_user(world.deps, user_id) == []
    assert ("channel.remove", str(channel_id)) in audited(world.deps)


@pytest.mark.parametrize("act", [channels.remove, channels.enable, channels.send_test])
def test_another_persons_channel_is_not_there(world: World, act: Callable[..., object]) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))
    bob = add_user(world.deps, "bob@example.org")
    with pytest.raises(NotFound):
        act(world.deps, channel_id, by=bob)
    assert _credentials(world.deps, channel_id) is not None
    assert world.channel.sent == []


# --- a test message --------------------------------------------------------------------------------------------------


def test_a_test_message_is_sent_outside_any_transaction(world: World) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))
    open_then: list[int] = []
    world.channel.while_sending = lambda: open_then.append(open_connections(world.deps.database))
    assert channels.send_test(world.deps, channel_id, by=OPERATOR).message_id == "m-1"
    assert open_then == [0]
    assert [recipient for recipient, _ in world.channel.sent] == ["u-ann"]


@pytest.mark.parametrize("raises", [False, True])
def test_a_refused_test_message_keeps_its_class_however_the_channel_tells_it(world: World, raises: bool) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))
    world.channel.outcome = Outcome(OutcomeClass.PERMANENT, DeliveryErrorCategory.INVALID_RECIPIENT)
    world.channel.raises = raises
    assert channels.send_test(world.deps, channel_id, by=OPERATOR) == world.channel.outcome


def _not_configured(world: World, _: UUID) -> Deps:
    world.channel.configured = False
    return world.deps


def _without_recipient(world: World, channel_id: UUID) -> Deps:
    with world.deps.database.transaction() as connection:
        connection.execute(
            update(notification_channels).where(notification_channels.c.id == channel_id).values(credentials=None)
        )
    return world.deps


@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        (_not_configured, "no credentials of its own"),
        (_without_recipient, "no recipient"),
        (lambda world, _: replace(world.deps, vault=Vault([new_key()])), "SITEBELL_SECRET_KEYS"),
        (lambda world, _: replace(world.deps, settings=make_settings({"pause_sending": True})), "paused"),
    ],
)
def test_nothing_is_sent_where_something_is_lacking(
    world: World, lacking: Callable[[World, UUID], Deps], sentence: str
) -> None:
    channel_id = add_channel(world.deps, add_user(world.deps))
    with pytest.raises(Unavailable, match=sentence):
        channels.send_test(lacking(world, channel_id), channel_id, by=OPERATOR)
    assert world.channel.sent == []


# --- keys ------------------------------------------------------------------------------------------------------------


def test_rotation_encrypts_everything_with_the_newest_key(world: World) -> None:
    old, new = new_key(), new_key()
    deps = replace(world.deps, vault=Vault([old]))
    user_id = add_user(deps)
    recipients = {
        add_channel(deps, user_id, f"u-{number}"): f"u-{number}" for number in range(channels.ROTATED_AT_ONCE + 3)
    }
    done = channels.rotate_keys(replace(deps, vault=Vault([new, old])))
    assert done == channels.Rotation(len(recipients), ())
    only_new = Vault([new])
    for channel_id, recipient in recipients.items():
        assert only_new.decrypt(_credentials(deps, channel_id) or "") == recipient


def test_what_no_key_opens_stays_and_is_named(world: World) -> None:
    user_id = add_user(world.deps)
    lost = add_channel(replace(world.deps, vault=Vault([new_key()])), user_id)
    before = _credentials(world.deps, lost)
    add_channel(world.deps, user_id)
    assert channels.rotate_keys(world.deps) == channels.Rotation(1, (lost,))
    assert _credentials(world.deps, lost) == before


def test_a_recipient_that_changes_during_a_rotation_is_not_lost(world: World) -> None:
    old, new = new_key(), new_key()
    deps = replace(world.deps, vault=Vault([old]))
    channel_id = add_channel(deps, add_user(deps))

    class Overtaken(Vault):
        """While the first token is rotated, another process with the old key writes a new recipient."""

        overtaken = False

        def rotate(self, token: str) -> str:
            if not self.overtaken:
                self.overtaken = True
                with deps.database.transaction() as connection:
                    changed = update(notification_channels).values(credentials=deps.vault.encrypt("u-new"))
                    connection.execute(changed)
            return super().rotate(token)

    assert channels.rotate_keys(replace(deps, vault=Overtaken([new, old]))) == channels.Rotation(1, ())
    assert Vault([new]).decrypt(_credentials(deps, channel_id) or "") == "u-new"


def test_with_no_channels_there_is_nothing_to_rotate(world: World) -> None:
    assert channels.rotate_keys(world.deps) == channels.Rotation(0, ())


def _credentials(deps: Deps, channel_id: UUID) -> str | None:
    channel = notification_channels.c
    with deps.database.reading() as connection:
        return connection.execute(select(channel.credentials).where(channel.id == channel_id)).scalar_one()


def _disable(deps: Deps, channel_id: UUID) -> None:
    with deps.database.transaction() as connection:
        connection.execute(
            update(notification_channels)
            .where(notification_channels.c.id == channel_id)
            .values(enabled=False, disabled_reason="invalid_recipient", refusals=3)
        )
