"""The checks of a case. A failed check does not end the case: all that went wrong is shown."""


class Checks:
    def __init__(self, report):
        self.report, self.failed, self.count = report, [], 0
        self.picture = ""

    def check(self, what, good, seen=""):
        self.count += 1
        if not good:
            self.failed.append((what, " ".join(str(seen).split())[:1200]))
            if not self.picture:
                # The state at the first failure says most.
                self.picture = self.take()
        return bool(good)

    def take(self):
        try:
            return self.report()
        except Exception as error:  # A report that fails must not hide the failure.
            return f"(no report: {type(error).__name__}: {error})"
