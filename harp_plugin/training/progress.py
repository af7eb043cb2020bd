"""Show a progress bar while a model trains, and a short line for each log entry."""

from __future__ import annotations

from transformers.trainer_callback import ProgressCallback

__all__ = ["StepBar", "evaluation_line", "training_line"]

_WIDTH = 80


class StepBar(ProgressCallback):
    """transformers' progress bar, with short lines for losses, accuracies and evaluations."""

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Write a line above the bar for a log entry of the training or of an evaluation."""
        if state.is_world_process_zero and self.training_bar is not None:
            if "loss" in logs:
                self.training_bar.write(training_line(state.global_step, logs))
            elif _evaluation_values(logs):
                self.training_bar.write(evaluation_line(state.global_step, logs))


def training_line(step: int, logs: dict[str, float]) -> str:
    """Write losses, the share of pairs in the right order by task, and the speed."""
    losses = [f"{name} {logs[key]:.3g}" for key, name in _short_names(logs, prefix="loss/")]
    accuracies = [f"{name} {logs[key]:.0%}" for key, name in _short_names(logs, suffix="/accuracy")]
    return _wrapped(
        step, [" ".join([f"loss {logs['loss']:.3g}", *losses]), " ".join(accuracies), _speed(logs)]
    )


def evaluation_line(step: int, logs: dict[str, float]) -> str:
    """Write the values of an evaluation; of held-out pairs only total loss and accuracy."""
    values = {name: value for name, value in _evaluation_values(logs).items() if "/" not in name}
    return _wrapped(
        step, ["validation " + " ".join(f"{name} {value:.4g}" for name, value in values.items())]
    )


def _evaluation_values(logs: dict[str, float]) -> dict[str, float]:
    return {name: logs[key] for key, name in _short_names(logs, prefix="eval_")}


def _speed(logs: dict[str, float]) -> str:
    if "tokens_per_second" not in logs:
        return ""
    rates = [f"{logs['tokens_per_second']:,.0f} tokens/s {logs['pairs_per_second']:,.1f} pairs/s"]
    if "model_flops_utilisation" in logs:
        rates.append(f"{logs['model_flops_utilisation']:.0%} of peak")
    return " ".join(rates)


def _wrapped(step: int, parts: list[str]) -> str:
    """Write the parts on as few lines as fit into a terminal."""
    lines: list[str] = []
    for part in filter(None, parts):
        longer = f"{lines[-1]} | {part}" if lines else f"{step:>6} {part}"
        if lines and len(longer) > _WIDTH:
            lines.append(f"{'':>6} {part}")
        else:
            lines[-1:] = [longer]
    return "\n".join(lines)


def _short_names(
    logs: dict[str, float], prefix: str = "", suffix: str = ""
) -> list[tuple[str, str]]:
    """Return the keys that begin and end so, each with its part between prefix and suffix."""
    keys = [key for key in logs if key.startswith(prefix) and key.endswith(suffix)]
    return [
        (key, key.removeprefix(prefix).removesuffix(suffix))
        for key in keys
        if prefix or not key.startswith("eval_")
    ]
