"""What a person sees of a running training: a bar, and a short line for each log entry."""

from __future__ import annotations

from transformers.trainer_callback import ProgressCallback

WIDTH = 80


class StepBar(ProgressCallback):
    """transformers' bar, with each loss and each task's pair accuracy on one line."""

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Write the line above the bar, for entries of a loss or an evaluation."""
        if state.is_world_process_zero and self.training_bar is not None:
            if "loss" in logs:
                self.training_bar.write(as_line(state.global_step, logs))
            elif _evaluated(logs):
                self.training_bar.write(as_evaluation(state.global_step, logs))


def as_line(step: int, logs: dict[str, float]) -> str:
    """One log entry: losses, the share of pairs in the right order by task, and the speed."""
    losses = [f"{name} {logs[key]:.3g}" for key, name in _of(logs, prefix="loss/")]
    right = [f"{name} {logs[key]:.0%}" for key, name in _of(logs, suffix="/accuracy")]
    return _wrapped(
        step, [" ".join([f"loss {logs['loss']:.3g}", *losses]), " ".join(right), _speed(logs)]
    )


def as_evaluation(step: int, logs: dict[str, float]) -> str:
    """The values of an evaluation; of held-out pairs the total loss and accuracy alone."""
    values = {name: value for name, value in _evaluated(logs).items() if "/" not in name}
    return _wrapped(
        step, ["validation " + " ".join(f"{name} {value:.4g}" for name, value in values.items())]
    )


def _evaluated(logs: dict[str, float]) -> dict[str, float]:
    return {name: logs[key] for key, name in _of(logs, prefix="eval_")}


def _speed(logs: dict[str, float]) -> str:
    if "tokens_per_second" not in logs:
        return ""
    rates = [f"{logs['tokens_per_second']:,.0f} tokens/s {logs['pairs_per_second']:,.1f} pairs/s"]
    if "model_flops_utilisation" in logs:
        rates.append(f"{logs['model_flops_utilisation']:.0%} of peak")
    return " ".join(rates)


def _wrapped(step: int, parts: list[str]) -> str:
    """Parts on as few lines as a terminal needs."""
    lines: list[str] = []
    for part in filter(None, parts):
        longer = f"{lines[-1]} | {part}" if lines else f"{step:>6} {part}"
        if lines and len(longer) > WIDTH:
            lines.append(f"{'':>6} {part}")
        else:
            lines[-1:] = [longer]
    return "\n".join(lines)


def _of(logs: dict[str, float], prefix: str = "", suffix: str = "") -> list[tuple[str, str]]:
    keys = [key for key in logs if key.startswith(prefix) and key.endswith(suffix)]
    return [
        (key, key.removeprefix(prefix).removesuffix(suffix))
        for key in keys
        if prefix or not key.startswith("eval_")
    ]
