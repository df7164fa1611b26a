"""What the opcodes of a pickle say in plain values and in names: they are walked or searched, never executed."""

from __future__ import annotations

import pickletools
import re
import struct

OPCODES_MAX = 400_000
"""A checkpoint of ten thousand tensors has about as many; a second is enough for the walk."""

OPAQUE, MARK = object(), object()
"""Whatever is not plain, and the mark that some opcodes reach back to."""


class Machine:
    """A stack as the unpickler has one, on which everything but text, numbers and dicts is one opaque thing."""

    def __init__(self, having: str) -> None:
        self.having = having
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.found: dict[int, dict[str, object]] = {}
        """Dicts with the wanted key by their identity, in the order in which they got it."""

    def take(self, opcode: pickletools.OpcodeInfo, argument: object) -> None:
        """One opcode; raises IndexError or ValueError where no unpickler could go on either."""
        name, stack = opcode.name, self.stack
        if "PUT" in name and isinstance(argument, int):
            self.memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif "GET" in name and isinstance(argument, int):
            stack.append(self.memo.get(argument, OPAQUE))
        elif name == "MARK":
            stack.append(MARK)
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "SETITEM":
            items = stack[-2:]
            del stack[-2:]
            self.fill(stack[-1], items)
        elif name == "SETITEMS":
            items = self.back_to_mark()
            self.fill(stack[-1], items)
        elif name == "DICT":
            items = self.back_to_mark()
            stack.append({})
            self.fill(stack[-1], items)
        else:
            self.pass_over(opcode, argument)

    def pass_over(self, opcode: pickletools.OpcodeInfo, argument: object) -> None:
        """Any other opcode takes and leaves as many things as its description says."""
        before, after = opcode.stack_before, opcode.stack_after
        count = len(before)
        if pickletools.markobject in before:
            self.back_to_mark()
            count = before.index(pickletools.markobject)
        if count:
            del self.stack[-count:]
        plain = isinstance(argument, str | int | float) and pickletools.anyobject not in after
        self.stack.extend([argument if plain else OPAQUE] * len(after))

    def back_to_mark(self) -> list[object]:
        """Everything above the last mark, which goes with it."""
        stack = self.stack
        for at in range(len(stack) - 1, -1, -1):
            if stack[at] is MARK:
                items = stack[at + 1 :]
                del stack[at:]
                return items
        raise ValueError("there is no mark")

    def fill(self, target: object, items: list[object]) -> None:
        """Put pairs into a dict; other keys than text are none of ours."""
        if isinstance(target, dict):
            target.update({k: v for k, v in zip(items[::2], items[1::2], strict=False) if isinstance(k, str)})
            if self.having in target:
                self.found[id(target)] = target


def plain_dicts(data: bytes, having: str) -> list[dict[str, object]]:
    """The dicts in a pickle that have the key ``having``, as far as the pickle goes and can be followed."""
    machine = Machine(having)
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > OPCODES_MAX:
                break
            machine.take(opcode, argument)
    except (ValueError, IndexError, struct.error, RecursionError):
        pass  # a cut or foreign pickle: what was seen so far is still true
    return list(machine.found.values())


ENDING = b".distcp"
SHARD_TEXT = re.compile(
    rb"(?:\x8c(.)|X(.)\0\0\0)([^/\x00-\x1f\x8c]{0,96}?__[0-9]{1,9}_[0-9]{1,9}\.distcp)\Z", re.DOTALL
)
"""A shard's name behind the opcode that makes it a text and the length in bytes, which is the opcode's argument."""
REACH = 128
"""Bytes before the end of a name in which all of that lies."""
HITS_MAX = 50_000
"""A pickle has each name once, or once a piece of a tensor; so many are searched in half a second at worst."""


def shard_names(data: bytes) -> frozenset[str]:
    """The names of ``.distcp`` files that are texts in a pickle.

    A large model's metadata has millions of opcodes, so they are looked at from the ends of such names, which
    is a thousand times faster than a walk.
    """
    found: set[bytes] = set()
    end = 0
    for _ in range(HITS_MAX):
        at = data.find(ENDING, end)
        if at < 0:
            break
        end = at + len(ENDING)
        hit = SHARD_TEXT.search(data, max(0, end - REACH), end)
        if hit and (hit[1] or hit[2])[0] == len(hit[3]):
            found.add(hit[3])
    return frozenset(name.decode("utf-8", "surrogateescape") for name in found)
