"""The command ``harp``, whose sub-commands are the files of `commands`."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from multiprocessing import resource_tracker
from types import FrameType, TracebackType

from ._version import __version__
from .commands import COMMANDS, load, stored_help
from .errors import HarpError, one_line, user_message

__all__ = ["console", "main"]

_USAGE = """\
usage: harp COMMAND [OPTION ...]

Pre-train rerankers on hyperlinks, and run them in PyTerrier.

commands:
{commands}

`harp COMMAND --help` shows the options of a command. The exit status is 0
if all is done, 2 after an error that you can fix, 130 after Ctrl-C and
143 after SIGTERM. After Ctrl-C or SIGTERM, run the command again and it
resumes. A second Ctrl-C ends the command at once."""
_INTERRUPTED = 130
_TERMINATED = 143
_SAID = {
    _INTERRUPTED: "interrupted; what is finished is kept, run again to resume",
    _TERMINATED: "terminated; what is finished is kept, run again to resume",
}


def console() -> int:
    """Run the command of this process's arguments, which ends the process."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed, as by `>&-`: the next file would have its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    status = main()
    if status in _SAID:
        _leave(status)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        argv: the command and its arguments; this process's by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    with _interruptible() as statuses:
        try:
            status = _run(arguments)
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (Exception, KeyboardInterrupt) as error:
            if not statuses and not isinstance(error, KeyboardInterrupt):
                return _failed(error)
            status = [*statuses, _INTERRUPTED][0]
            print(f"\nharp: {_SAID[status]}", file=sys.stderr)
            return status


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        lines = (f"  {name:<14}  {summary}" for name, summary in COMMANDS.items())
        print(_USAGE.format(commands="\n".join(lines)))
        return 0
    if arguments[0] == "--version":
        print(f"harp {__version__}")
        return 0
    if any("\0" in argument for argument in arguments):
        raise HarpError("an argument holds a NUL character, which no name of a file can have")
    name, *argv = arguments
    if name not in COMMANDS:
        raise HarpError(f"unknown command {name!r}: known are {', '.join(sorted(COMMANDS))}")
    if {"-h", "--help"} & {*takewhile("--".__ne__, argv)}:
        print(stored_help(name), end="")
        return 0
    _quiet_libraries()
    _leave_cores_to_others()
    return load(name).main(argv, name, COMMANDS[name])


def _failed(error: Exception) -> int:
    """Report an error of the user, the system or the input in one line; raise any other."""
    message = user_message(error)
    if message is None:
        raise error
    print(f"harp: error: {one_line(message)}", file=sys.stderr)
    return 2


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Turn the first Ctrl-C or SIGTERM into one KeyboardInterrupt of the main thread.

    The second one ends the process and its children at once.

    Yields:
        A list that receives the exit status which the first signal asks for.
    """
    statuses: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield statuses
        return
    process, was_raised = os.getpid(), False
    hooks = sys.unraisablehook, threading.excepthook, sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        # A forked process that loads data sends tensors to a parent that Ctrl-C has ended.
        if os.getpid() == process or not isinstance(error, (ConnectionError, EOFError)):
            hooks[2](kind, error, trace)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal was_raised
        if os.getpid() != process:  # a forked child, which its parent ends
            os._exit(_TERMINATED)
        statuses.append(_TERMINATED)
        if was_raised:
            _leave(statuses[0])
        was_raised = True
        sys.unraisablehook = lambda _: None
        threading.excepthook = lambda _: None
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handle)
    sys.excepthook = show
    try:
        with _sigint_as_sigterm(statuses):
            yield statuses
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook, threading.excepthook, sys.excepthook = hooks


@contextmanager
def _sigint_as_sigterm(statuses: list[int]) -> Iterator[None]:
    """Let one thread wait for SIGINT, which all others block, and send SIGTERM to this process.

    Processes that are started inherit that SIGINT is blocked, so that the Ctrl-C of a terminal
    reaches this process only, which ends them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    ended = threading.Event()

    def wait() -> None:
        while signal.sigwait({signal.SIGINT}) and not ended.is_set():
            statuses.append(_INTERRUPTED)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    resource_tracker.ensure_running()  # its start unblocks SIGINT
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    try:
        yield
    finally:
        ended.set()
        signal.pthread_kill(waiter.ident or 0, signal.SIGINT)
        waiter.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _leave(status: int) -> None:
    """End this process and its children at once, without clean-up and without tracebacks."""
    for child in multiprocessing.active_children():
        child.kill()
    sys.stdout.flush()
    os._exit(status)


class _OneLine(logging.Formatter):
    """Says which other package a message is from, and escapes control characters of messages, which
    may hold names and texts of sources."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        package = record.name.partition(".")[0]
        if package != __package__:
            return one_line(f"{record.name}: {record.message}")
        is_warning = record.levelno >= logging.WARNING
        return one_line(f"warning: {record.message}" if is_warning else record.message)


def _quiet_libraries() -> None:
    """Hold back the notices and progress bars of libraries, so that those of harp are seen."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    logging.getLogger("harp_plugin").setLevel(logging.INFO)


def _leave_cores_to_others() -> None:
    """Let a thread of torch that waits for another thread sleep early.

    GNU's OpenMP, which torch uses on Linux, lets a waiting thread check 300,000 times before it
    sleeps. Where another program computes on the same cores, the waiting thread then occupies the
    core that the other thread needs. `docs/cost.md` says what 1,000 times gain.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


if __name__ == "__main__":
    sys.exit(console())
