"""The instructor's page about a class."""

from __future__ import annotations

from dataclasses import replace

from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import exercises
from helpers.grading.record import Record
from helpers.grading.reports.class_page import class_page, histogram, stuck_learners
from helpers.grading.reports.mistakes import frequent_mistakes, normalize_words, pass_rates
from tests.grading.reports.builders import (
    DEADLOCK,
    LOOK,
    SECRET_INPUT,
    a_class,
    case,
    course_of,
    exercise,
    fault,
    hidden_case,
    record,
    unreadable,
)
from tests.grading.reports.page_tags import Page


def text_of(*records: Record, title: str = "Autumn") -> str:
    return " ".join(Page(class_page(course_of(records, title))).text.split())


def test_empty_class_has_page() -> None:
    assert "0 learners" in text_of()


def test_reports_untested_torch() -> None:
    for torch in ("2.13.0+cpu", "2.14.1"):
        text = text_of(replace(record("Ada", exercise()), versions={"torch": torch}))
        assert ("verdicts may be wrong" in text) == (torch == "2.14.1")


def test_lists_hardest_exercises_first() -> None:
    records = [
        record("Ada", exercise("ping_pong"), exercise("token_ring", "wrong")),
        record("Bob", exercise("ping_pong"), exercise("token_ring", "not attempted")),
        record("Cleo", exercise("ping_pong", "wrong"), fault("token_ring")),
    ]
    first, second = pass_rates(course_of(records, "Autumn"))
    assert (first.title, first.graded, first.passed, first.not_attempted) == (
        "2.2 Token ring",
        2,
        0,
        1,
    )
    assert first.median_points == 2.0 and first.share_passed == 0
    assert (second.title, second.graded, second.passed) == ("2.1 Ping-pong", 3, 2)
    assert "67 % (2 of 3)" in text_of(*records)


def test_merges_mistakes_differing_in_numbers() -> None:
    def wrong(rank: int) -> tuple[object, ...]:
        return (
            case(outcome="wrong", advice=f"Rank {rank} kept tensor([{rank}., 2.]) at 0x7f{rank}."),
        )

    records = [
        record("Ada", exercise(outcome="wrong", cases=wrong(1))),
        record("Bob", exercise(outcome="wrong", cases=wrong(3))),
        record("Cleo", exercise(outcome="crashed", cases=wrong(1))),
    ]
    first, second = frequent_mistakes(course_of(records, "Autumn"))
    assert [each.learner for each in first.learners] == ["Ada", "Bob"]
    assert first.said.startswith("Rank 1 kept")
    assert second.outcome == "crashed"
    assert normalize_words("Sent [1, 2.5] in  3 ms") == normalize_words("sent [7] in 12 ms")
    assert normalize_words("Rank 1 waits") != normalize_words("Rank 1 sends")


def test_groups_answers_by_known_mistake() -> None:
    known = known_mistakes(exercises()["broadcast_from"])[0]
    filled = [known.words.replace("{src}", str(rank)) for rank in (1, 5)]
    explained = [
        exercise("broadcast_from", "crashed", cases=(case(outcome="crashed", message=m, advice=a),))
        for m, a in zip(("IndexError", "ValueError"), filled, strict=True)
    ]
    # two deadlocks with the same advice, and other ranks that wait
    waits = (DEADLOCK, "rank 0 waits for rank 2 in all_reduce, line 9")
    stuck_ones = [
        exercise(
            "ping_pong", "deadlocked", cases=(case(outcome="deadlocked", message=m, advice=LOOK),)
        )
        for m in waits
    ]
    tries = zip(explained, stuck_ones, strict=True)
    records = [record(f"Learner {at}", *pair) for at, pair in enumerate(tries)]
    groups = frequent_mistakes(course_of(records, "Autumn"))
    assert [(each.known, len(each.learners)) for each in groups] == [
        (known.title, 2),
        ("", 1),
        ("", 1),
    ]


def test_class_page_hides_hidden_cases() -> None:
    text = text_of(record("Ada", exercise(outcome="wrong", cases=(case(), hidden_case()))))
    assert "271828" in SECRET_INPUT and "271828" not in text
    assert "a hidden one does not" in text


def test_lists_stuck_learners_with_reason() -> None:
    records = [
        record("Ada", exercise("ping_pong"), exercise("token_ring")),
        record("Bob", exercise("ping_pong", "wrong"), exercise("token_ring", "not attempted")),
        unreadable("Cleo"),
    ]
    found = {
        standing.learner: why for standing, why in stuck_learners(course_of(records, "Autumn"))
    }
    assert found["Bob"] == "4 of 20 points; 1 of 2 not attempted"
    assert "1 file cannot be read" in found["Cleo"] and "Ada" not in found


def test_attention_list_shows_faults_and_flags() -> None:
    flagged = exercise(flags=("traffic does not match: look",))
    text = text_of(
        record("Ada", flagged),
        record("Bob", fault()),
        unreadable("Cleo"),
    )
    assert "Needs your attention" in text and "traffic does not match: look" in text
    assert "harness fault" in text and "SIGKILL" in text
    assert "3 to look at" in text


def test_lists_and_links_every_learner() -> None:
    course = course_of(a_class(12), "Autumn")
    page = Page(class_page(course))
    links = {each for each in page.values("href") if each.startswith("learners/")}
    assert links == {f"learners/{each.page}" for each in course.standings}
    assert all(each.learner in page.text for each in course.standings)


def test_distribution_counts_each_learner_once() -> None:
    shares = [0.0, 0.05, 0.1, 0.3, 0.55, 0.999, 1.0, 1.0]
    assert histogram(shares) == [2, 1, 0, 1, 0, 1, 0, 0, 0, 3]
    records = [record("Ada", exercise()), record("Bob", exercise(outcome="wrong"))]
    (label,) = Page(class_page(course_of(records, "Autumn"))).values("aria-label")
    assert label == (
        "Learners by share of the points. 40-50 %: 1, 90-100 %: 1. The median is 70 %."
    )


def test_labels_never_parse_as_mathtext() -> None:
    title = r"Autumn $\frac{1}{$ and $x^2$"
    text = text_of(record(r"$\alpha$ & Ada"), title=title)
    assert title in text and r"$\alpha$ & Ada" in text


def test_counts_better_copy_and_reports_both() -> None:
    good = record("Ada", exercise())
    bad = replace(good, file="Ada/copy.ipynb", exercises=(exercise(outcome="wrong"),))
    for records in ([good, bad], [bad, good]):
        (standing,) = course_of(records, "Autumn").standings
        assert standing.points == 10 and standing.out_of == 10
        assert "further copy" in text_of(*records) and "Ada/copy.ipynb" in text_of(*records)


def test_ungraded_exercises_lower_reachable_points() -> None:
    ada = record("Ada", exercise("ping_pong"), exercise("token_ring"))
    bob = record("Bob", exercise("ping_pong"), fault("token_ring"))
    course = course_of([ada, bob], "Autumn")
    assert course.points_by_notebook == {"02_blocking_p2p": 20.0}
    assert [(each.points, each.out_of) for each in course.standings] == [(20.0, 20.0), (10.0, 10.0)]
    assert all(each.share == 1.0 for each in course.standings)


def test_filename_identifies_unreadable_notebook() -> None:
    course = course_of([record("Ada", exercise()), unreadable("Cleo")], "Autumn")
    cleo = course.standings[1]
    assert (
        cleo.missing == () and cleo.out_of == 10 and cleo.record_of("02_blocking_p2p") is not None
    )


def test_rarely_attempted_exercises_count_as_optional() -> None:
    names = ("ping_pong", "token_ring", "exchange_in_pairs", "tagged_mail", "pipeline_sum")
    solved = [
        record(
            f"learner {at}",
            *(exercise(name, "passed" if name in names[:2] else "not attempted") for name in names),
        )
        for at in range(31)
    ]
    assert not stuck_learners(course_of(solved, "Autumn"))
    behind = record(
        "behind",
        *(exercise(name, "passed" if name == names[4] else "not attempted") for name in names),
    )
    ((standing, why),) = stuck_learners(course_of([*solved, behind], "Autumn"))
    assert standing.learner == "behind"
    assert "0 of 20 points in the exercises that others attempted" in why
