"""Everything around the exercises: the learner's folder, progress, hints, quizzes, and the `course` tool."""
