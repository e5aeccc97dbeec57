"""The quiz of the explorer: before a step is shown, the reader says which side is fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser import Explorer

EFFECTS = "return [...document.querySelectorAll('.effect')].map((it) => it.textContent).join('')"
FOCUS = "return document.activeElement.dataset.answer ?? document.activeElement.dataset.do ?? null"


def keys(explorer: Explorer, *pressed: str) -> None:
    from selenium.webdriver import ActionChains

    for key in pressed:
        ActionChains(explorer.driver).send_keys(key).perform()


def answer(explorer: Explorer, text: str) -> None:
    explorer.press(f'[data-answer="{text}"]')


def is_asked(explorer: Explorer) -> bool:
    return explorer.find("#question").is_displayed()


@pytest.fixture
def quiz(explorer: Explorer) -> Explorer:
    """The page with the quiz switched on."""
    explorer.press("#quiz")
    return explorer


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("before", "call", "right"),
    [
        ([], "cpu_data", "host"),
        ([], "mutable_gpu_data", "device"),
        (["cpu_data"], "gpu_data", "both"),
        (["gpu_data"], "set_cpu_data", "host"),
        ([], "async_gpu_push", "neither"),
        (["cpu_data", "gpu_data"], "async_gpu_push", "both"),
        (["cpu_data", "gpu_data"], "release", "neither"),
        (["cpu_data"], "set_mode(CPU)", "host"),
    ],
)
def test_one_answer_is_right(quiz: Explorer, before: list[str], call: str, right: str) -> None:
    """Of the four answers, one is right; also of calls that are refused, and of those that change nothing."""
    for text in ("host", "device", "both", "neither"):
        quiz.go(before)
        quiz.call(call)
        answer(quiz, text)
        assert quiz.text("score").startswith("✓ Right." if text == right else f"✗ Not so: you said {text}.")
    assert quiz.text("score").endswith("1 of 4 right")


def test_nothing_is_shown_before_the_answer(quiz: Explorer) -> None:
    before = quiz.shown()
    quiz.call("cpu_data")

    assert is_asked(quiz)
    assert before == quiz.shown()
    assert [] == quiz.steps()
    assert "" == quiz.run(EFFECTS)
    assert "cpu_data(): which side is fresh now?" == quiz.text("asked") == quiz.text("live")
    answer(quiz, "host")
    assert not is_asked(quiz)
    assert ["cpu_data"] == quiz.steps()
    assert "C:o-" == quiz.shown().configuration
    assert "Right. The host side is fresh. 1 of 1 right. Allocated on the host, because" in quiz.text("live")
    assert "" == quiz.run(EFFECTS)


def test_without_the_quiz_the_buttons_say_what_they_would_do(explorer: Explorer) -> None:
    assert "allocate_cpu" in explorer.run(EFFECTS)
    explorer.press("#failing")
    assert explorer.find(".fail").is_displayed()
    explorer.press("#quiz")
    assert "" == explorer.run(
        EFFECTS + " + document.querySelectorAll('#call-list :is(.fail, .refused)').length"
    ).rstrip("0")
    explorer.press("#quiz")
    assert "allocate_cpu" in explorer.run(EFFECTS)
    assert explorer.find(".fail").is_displayed()


def test_a_step_of_a_trace_is_asked_and_its_effect_is_hidden(quiz: Explorer) -> None:
    quiz.go(["mutable_gpu_data", "cpu_data"], at=0)
    ahead = "return [...document.querySelectorAll('.ahead :is(.soft, .where)')].filter((it) =>"
    ahead += " getComputedStyle(it).visibility === 'visible').length"

    assert 0 == quiz.run(ahead)
    quiz.press("#forward")
    assert is_asked(quiz)
    answer(quiz, "device")
    quiz.press("#forward")
    answer(quiz, "both")
    assert quiz.text("score").endswith("2 of 2 right")
    quiz.press("#undo")
    assert not is_asked(quiz)
    quiz.press("#quiz")
    assert 0 < quiz.run(ahead)


def test_a_question_can_be_taken_back_and_another_call_replaces_it(quiz: Explorer) -> None:
    quiz.call("cpu_data")
    quiz.call("gpu_data")
    assert "gpu_data(): which side is fresh now?" == quiz.text("asked")
    quiz.press("#drop")

    assert not is_asked(quiz)
    assert [] == quiz.steps()
    assert "0 of 0 right" == quiz.text("score")


def test_a_random_step_is_asked(quiz: Explorer) -> None:
    quiz.press("#walk")
    assert is_asked(quiz)
    answer(quiz, "neither")

    assert quiz.text("score").endswith(" of 1 right")
    assert 1 == len(quiz.steps())


def test_the_quiz_is_done_with_the_keyboard(explorer: Explorer) -> None:
    """Keys call, and then answer; the focus is at the answers while there is a question, and then where it was."""
    from selenium.webdriver.common.keys import Keys

    keys(explorer, "a", "1", "1")
    assert "✓ Right. The host side is fresh.1 of 1 right" == explorer.text("score")
    keys(explorer, "2", "9")
    assert "async_gpu_push(): which side is fresh now?" == explorer.text("asked")
    keys(explorer, Keys.ESCAPE)
    assert not is_asked(explorer)
    explorer.run("document.querySelector('[data-do=gpu_data]').focus()")
    keys(explorer, Keys.ENTER)
    assert "host" == explorer.run(FOCUS)
    keys(explorer, Keys.TAB, Keys.TAB, Keys.ENTER)
    assert "✓ Right. Both sides are fresh.2 of 2 right" == explorer.text("score")
    assert "gpu_data" == explorer.run(FOCUS)


def test_the_score_begins_anew_with_the_quiz(quiz: Explorer) -> None:
    quiz.call("cpu_data")
    answer(quiz, "host")
    quiz.press("#reset")
    assert quiz.text("score").endswith("1 of 1 right")
    quiz.press("#quiz")
    assert not quiz.find("#score").is_displayed()
    quiz.press("#quiz")
    assert "0 of 0 right" == quiz.text("score")
