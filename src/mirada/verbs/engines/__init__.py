"""Models run by something else than torch: ONNX Runtime or OpenVINO, in float32 or int8."""
