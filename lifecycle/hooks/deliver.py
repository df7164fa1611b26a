"""Sends notices to several receivers at once, each with a few tries, all within one budget of time."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from queue import Empty, SimpleQueue
from socket import getaddrinfo
from threading import Event as Flag
from threading import Thread
from time import monotonic
from typing import NamedTuple

from lifecycle.hooks.addresses import Target, Unfit, target_of
from lifecycle.hooks.post import Answer, Resolve, Undelivered, post
from lifecycle.hooks.secrets import NoSecret, secret_of
from lifecycle.ports.news import Asked, Sent
from lifecycle.ports.secret import Reference

BUDGET_S = 45.0
"""All receivers together: a tick does not take longer for telling of it."""
PAUSES_S = (1.0, 4.0, 10.0)
"""Before the second try, and those after it."""
POLL_S = 0.05
SIGNATURE = "X-Lifecycle-Signature-256"
"""``sha256=`` and the hex digits of the body's HMAC."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One receiver: where what it takes is read from, never what stands there."""

    to: Reference
    allow_http: bool = False
    token: Reference | None = None
    sign: Reference | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    resolve: Resolve = getaddrinfo
    context: ssl.SSLContext | None = None
    pauses_s: tuple[float, ...] | None = None
    """As ``PAUSES_S`` if not given."""

    def tries(self, body: bytes, over: Flag) -> Iterator[Sent]:
        """Send one notice: what came of each try, the last of which counts; ``over`` ends the pauses between them."""
        try:
            target = target_of(secret_of(self.to, self.env), allow_http=self.allow_http)
            headers = self._headers(body)
        except (NoSecret, Unfit) as error:
            yield Sent(False, text=str(error))
            return
        for number, pause_s in enumerate((*(self.pauses_s or PAUSES_S), None), 1):
            sent, wait_s = self._once(target, body, headers, number)
            yield sent
            if wait_s is None or wait_s > BUDGET_S or pause_s is None or over.wait(max(pause_s, wait_s)):
                return

    def _headers(self, body: bytes) -> dict[str, str]:
        headers = {}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {secret_of(self.token, self.env)}"
        if self.sign is not None:
            key = secret_of(self.sign, self.env).encode("ascii")
            headers[SIGNATURE] = f"sha256={hmac.new(key, body, sha256).hexdigest()}"
        return headers

    def _once(self, target: Target, body: bytes, headers: Mapping[str, str], number: int) -> tuple[Sent, float | None]:
        """One try, and how long to wait at least before another one; None: another one would do no better."""
        try:
            answer = post(target, body, headers, self.context, self.resolve)
        except Undelivered as error:
            return Sent(False, target.host, None, number, str(error)), 0.0 if error.again else None
        except Exception as error:  # in a thread of its own: there is nobody above to tell, and the text may be secret
            return Sent(False, target.host, None, number, f"a fault of ours, {type(error).__name__}"), None
        return _judged(answer, target.host, number)


def _judged(answer: Answer, host: str, number: int) -> tuple[Sent, float | None]:
    status = answer.status
    if 200 <= status < 300:
        return Sent(True, host, status, number), None
    why = f"answered {status}"
    if 300 <= status < 400:
        why += ": it sends us elsewhere, and redirects are not followed"
    again = status == 429 or status >= 500
    return Sent(False, host, status, number, why), float(answer.pause_s) if again else None


def deliver(
    letters: Sequence[tuple[Hook, bytes]], asked: Asked = lambda: False, budget_s: float = BUDGET_S
) -> list[Sent]:
    """Send all of them, to each receiver one after the other, to all receivers at once.

    Args:
        letters: receivers and what each is sent.
        asked: whether somebody has asked to stop: then nothing is waited for any more.
        budget_s: how long all of it may take.
    """
    over, done = Flag(), SimpleQueue[_Came]()
    queues: dict[Reference, list[int]] = {}
    for i, (hook, _) in enumerate(letters):
        queues.setdefault(hook.to, []).append(i)

    def work(mine: Sequence[int]) -> None:
        for i in mine:
            hook, body = letters[i]
            for sent in hook.tries(body, over):
                done.put(_Came(i, sent))
            done.put(_Came(i, None))
            if over.is_set():
                return

    for to, mine in queues.items():
        # A daemon, since a name that nobody answers for may hold it for minutes, and nobody waits for it then.
        Thread(target=work, args=(mine,), daemon=True, name=f"webhook {to}").start()
    found = _gather(len(letters), done, asked, budget_s)
    over.set()
    return found


class _Came(NamedTuple):
    """What came of one try at a letter; None: there will be no other one."""

    letter: int
    sent: Sent | None


def _gather(count: int, done: SimpleQueue[_Came], asked: Asked, budget_s: float) -> list[Sent]:
    sent: dict[int, Sent] = {}
    left, end_s, why = set(range(count)), monotonic() + budget_s, ""
    while left and not why:
        try:
            came = done.get(timeout=POLL_S)
        except Empty:
            pass
        else:
            if came.sent is None:
                left.discard(came.letter)
            else:
                sent[came.letter] = came.sent
        if asked():
            why = "asked to stop"
        elif monotonic() > end_s:
            why = f"the {budget_s:.0f} s for all receivers are over"
    for i in left:
        last = sent.get(i, Sent(False, text="no answer yet, so it may have arrived"))
        sent[i] = last if last.done else last._replace(text=f"{last.text}; {why}")
    return [sent[i] for i in range(count)]
