"""What the page of measurements says about busy machines, processes and precision, from made-up results."""

import pytest
from benchmarks import busy, precision, scale_out
from benchmarks.page_speed import busy_text, precision_text, scale_text

MACHINE = {"processor": "a processor", "torch": "2", "python": "3"}


def rounds(*p50s: float) -> list[dict]:
    return [{"p50_ms": p50, "p95_ms": 2 * p50, "threads": 2, "waiting": ""} for p50 in p50s]


def busy_results(step: tuple[float, ...]) -> dict:
    predict = {
        "mirada": {"0": rounds(10, 20), "1": rounds(11, 22), "2": rounds(13, 26)},
        "torch": {"0": rounds(9, 18), "1": rounds(30, 60), "2": rounds(900, 1800)},
    }
    train = {policy: {count: rounds(100, 100, 100) for count in "012"} for policy in ("mirada", "torch")}
    train["torch"]["2"] = rounds(*step)
    return {"machine": MACHINE, "cores": 2, "batch": 32, "predict": predict, "train": train}


def test_a_busy_machine_in_words():
    text = busy_text(busy_results((160, 170, 180)))
    assert "| one image, Mirada's policy | 15 / 30 ms | 16 / 33 ms | 20 / 39 ms |" in text
    assert "| one image, torch's defaults | 14 / 27 ms | 45 / 90 ms | 1350 / 2700 ms |" in text
    assert "beside 2 neighbours takes 1.30× (1.30–1.30) the time it takes alone" in text
    assert "is 1.70× (1.65–1.75) as fast" in text


def test_no_ratio_where_the_rounds_do_not_agree():
    assert "about once (a tie, 0.95–1.20) as fast" in busy_text(busy_results((90, 100, 140)))
    assert busy_text({}) == scale_text({}) == ""


def test_several_processes_in_words():
    both = {"seconds": [[0.4, 0.4], [0.2, 0.25]], "ratio": [1.8, 1.7, 1.9], "agree": True}
    train = both | {"batch": 64, "steps": 60, "difference": 3e-7, "limits": [1.7, 1.9]}
    large = train | {"batch": 256, "difference": 1e-7}
    text = scale_text({"machine": MACHINE, "cores": 2, "train": train, "large": large, "map": both | {"agree": False}})
    assert "| training, a step of 64 images | 400 ms | 225 ms | 1.80× (1.70–1.90) | 1.80× | 2 | yes |" in text
    assert "a step of 256 images" in text
    assert "| **no** |" in text
    assert "at most 3e-07" in text


@pytest.mark.parametrize("what", ["predict", "train"])
def test_a_job_of_the_busy_machine(monkeypatch, what):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # or the policy would stay in this process
    found = busy.run_job({"what": what, "policy": "mirada", "seconds": 0.0, "depth": 1})
    assert 0 < found["p50_ms"] <= found["p95_ms"]


@pytest.mark.long
@pytest.mark.parametrize("script", [busy, scale_out])
def test_a_trial_works(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["script", "--try"])
    script.main()
    assert "It works" in capsys.readouterr().out


def test_precision_in_words():
    row = {"chosen": "float32", "ms": {"float32": 100.0, "bfloat16": 110.0}, "bfloat16_faster": [0.91, 0.9, 0.92]}
    text = precision_text({"machine": MACHINE, "threads": 2, "models": {"vit": row}})
    assert "| vit | 100.0 ms | 110.0 ms | 0.91× (0.90–0.92) | float32 |" in text


@pytest.mark.long
def test_the_guard_of_precision_is_measured(capsys):
    precision.main(["--try"])
    assert "vit:nano, 8 px, batch 64 |" in capsys.readouterr().out
