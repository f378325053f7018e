"""The exercise of the prologue."""

from attnbook.exercises._exercise import Predict

pairs_for_distance = Predict(
    name="pairs_for_distance",
    chapter="00_pronoun",
    difficulty=1,
    minutes=4,
    reread="00_pronoun.distance",
    answer="b",
    mistakes={"reason": "a", "never": "c", "names_decide": "d"},
)

EXERCISES = [pairs_for_distance]
