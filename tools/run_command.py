"""What the scripts behind a command of ./rush run their main function by."""
import os
import signal
import sys


def run_main(command, main):
    """Ends the program with main's status. What stops it from outside, or a full disk, is told in a line or by the status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader of a pipe may stop before the end
    try:
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python writes the rest as it ends
        status = f"rush: {command}: {error}" if error.filename else f"rush: {command}: cannot write to stdout: {error.strerror}"
    sys.exit(status)
