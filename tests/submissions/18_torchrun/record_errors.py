from torch.distributed.elastic.multiprocessing.errors import record


# %% right: the decorated function, called
def record_errors(main):
    record(main)()


# %% right: a function of its own under the decorator
def record_errors(main):
    @record
    def entry():
        return main()

    entry()


# %% right: written down, told, and raised again
def record_errors(main):
    import sys

    try:
        record(main)()
    except Exception as error:
        print("worker failed:", error, file=sys.stderr)
        raise


# %% wrong: decorated but never called | wrong | says: calls of main: 0 is not 1
def record_errors(main):
    return record(main)


# %% wrong: main runs before it is decorated | wrong | says: its error file has no message
def record_errors(main):
    record(main())


# %% wrong: swallowed | wrong | says: exit code 0
def record_errors(main):
    try:
        record(main)()
    except Exception as error:
        print("failed:", error)


# %% wrong: not recorded at all | wrong | says: its error file has no message
def record_errors(main):
    main()


# %% wrong: another exception in its place | crashed | says: Do not replace main's exception
def record_errors(main):
    try:
        record(main)()
    except Exception:
        raise SystemExit(1)


# %% wrong: caught inside what is recorded | crashed | says: RuntimeError: training failed
def record_errors(main):
    @record
    def entry():
        try:
            main()
        except Exception:
            raise RuntimeError("training failed") from None

    entry()


# %% wrong: tried a second time | wrong | says: calls of main: 2 is not 1
def record_errors(main):
    try:
        main()
    except Exception:
        record(main)()


# %% wrong: a log of its own beside it | wrong | says: writes other files: log.txt
def record_errors(main):
    try:
        record(main)()
    except Exception as error:
        with open("log.txt", "w") as log:
            log.write(str(error))
        raise


# %% wrong: ended at once | wrong | says: os\._exit|its error file has no message
def record_errors(main):
    import os

    try:
        main()
    except Exception:
        os._exit(1)


# %% wrong: the process is ended early | wrong | says: os\._exit
import os

from torch.distributed.elastic.multiprocessing.errors import record


def record_errors(main):
    try:
        record(main)()
    except BaseException:
        os._exit(1)
