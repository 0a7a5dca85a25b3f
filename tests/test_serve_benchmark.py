"""What the measurements page says of serving, from made-up results."""

from benchmarks.page_serve import serve_text

RESULTS = {
    "machine": {"processor": "Slow", "torch": "2"},
    "system": "vit",
    "size": "mini",
    "num_parameters": 2_000_000,
    "clients": 32,
    "image_size": 224,
    "cores": 2,
    "seconds": 60.0,
    "ratio": 0.8,
    "ratios": [0.8, 0.75, 0.9],
    "cpu_ratio": 0.85,
    "errors": 0,
    "offline": [{"per_second": n, "cpu_ms": 30.0} for n in (50.0, 48.0, 52.0)],
    "served": [{"answered": {"per_second": n, "p50_ms": 700.0, "p99_ms": 900.0}} for n in (40.0, 36.0, 46.8)],
    "overload": {
        "waiting": 4,
        "errors": 0,
        "answered": {"per_second": 20.0},
        "refused": {"per_second": 180.0, "p50_ms": 5.0, "p99_ms": 31.0},
    },
}


def test_the_page_tells_ratio_waiting_and_refusals():
    text = serve_text(RESULTS)
    assert "| served to 32 clients | 40.0 | 700 ms | 900 ms | 0 |" in text and "| 50.0 |" in text
    assert "**80 %** (rounds: 80 %, 75 %, 90 %); by CPU time of an image, 85 %" in text
    assert "90 % are refused with 503, after 5.0 ms (p99 31 ms)" in text
    assert serve_text({}) == ""
