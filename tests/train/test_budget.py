"""How long a step takes, on a machine where others come and go."""

from mirada.train.budget import MAX_STEPS, MOST_SECONDS, SECONDS, is_enough, quicker


def test_steady_steps_are_timed_for_a_moment():
    assert not is_enough([0.03] * 3, SECONDS)  # too few, however long they took
    assert not is_enough([0.03] * 20, SECONDS / 2)
    assert is_enough([0.03] * 20, SECONDS)
    assert is_enough([0.03] * MAX_STEPS, SECONDS / 2)


def test_a_neighbour_of_a_moment_does_not_decide():
    disturbed = [1.5, 1.2, 0.9, 1.1, 0.03, 0.03]
    assert not is_enough(disturbed, SECONDS) and is_enough(disturbed, MOST_SECONDS)
    calm_again = [*disturbed, *[0.03] * 8]
    assert is_enough(calm_again, SECONDS) and quicker(calm_again) == 0.03
