"""Laws of work and traffic meet their limits."""

from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import work

BYTES = st.integers(1, 8)


@given(BYTES, BYTES, BYTES)
def test_a_weight_without_a_master_is_its_own(weight: int, moments: int, gradient: int) -> None:
    assert work.optimizer_bytes(weight, moments, gradient, 0) == work.optimizer_bytes(0, moments, gradient, weight)


@given(BYTES, BYTES, BYTES, BYTES)
def test_states_are_read_and_written_a_gradient_read_twice_and_a_copy_of_the_weight_written(
    master: int, moments: int, gradient: int, weight: int
) -> None:
    read = master + moments + gradient + gradient  # once for the norm and once for the step
    written = master + moments + weight
    assert read + written == work.optimizer_bytes(master, moments, gradient, weight)


@given(BYTES, BYTES, BYTES, BYTES, BYTES)
def test_smaller_states_never_move_more(master: int, moments: int, gradient: int, weight: int, less: int) -> None:
    whole = work.optimizer_bytes(master, moments, gradient, weight)
    assert work.optimizer_bytes(master, max(moments - less, 0), gradient, weight) <= whole
    assert work.optimizer_bytes(master, moments, max(gradient - less, 0), weight) <= whole
    assert work.optimizer_bytes(master, moments, gradient, max(weight - less, 0)) <= whole
