"""Proofs that an answer came from the console."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets

from . import _ed25519
from .errors import InvalidRequest, UnverifiedAnswer

_SCHEME = "ed25519:"
_CONTEXT = b"cra console answer v1\0"
_MEMBER = b',"proof":"'
_END = b'"}'
_PROOF_CHARS = 88
CHALLENGE_BYTES = 32


class AnswerKey:
    """Public key of the console's answers, as `cra trace key --answers` prints it."""

    def __init__(self, text: str) -> None:
        wrong = InvalidRequest("the key must have the form `ed25519:BASE64`, as `cra trace key --answers` prints it")
        text = text.strip()
        if not text.startswith(_SCHEME):
            raise wrong
        try:
            self._bytes = base64.b64decode(text[len(_SCHEME) :], validate=True)
        except (binascii.Error, ValueError):
            raise wrong from None
        if not _ed25519.is_valid_key(self._bytes):
            raise wrong

    def __repr__(self) -> str:
        return f"AnswerKey({_SCHEME}{base64.b64encode(self._bytes).decode()!r})"

    def verify(self, challenge: bytes, request: bytes, line: bytes) -> bytes:
        """Returns the answer without its proof. Both lines have no line feed."""
        rest = line[: -len(_END)]
        answer, proof = rest[:-_PROOF_CHARS], rest[-_PROOF_CHARS:]
        if not line.endswith(_END) or len(proof) != _PROOF_CHARS or not answer.endswith(_MEMBER):
            raise UnverifiedAnswer("the answer has no proof")
        answer = answer[: -len(_MEMBER)] + b"}"
        try:
            signature = base64.b64decode(proof, validate=True)
        except (binascii.Error, ValueError):
            raise UnverifiedAnswer("the answer has no proof") from None
        signed = _CONTEXT + challenge + hashlib.sha256(request).digest() + hashlib.sha256(answer).digest()
        if not _ed25519.verify(self._bytes, signed, signature):
            raise UnverifiedAnswer("the proof of the answer is not valid")
        return answer


def new_challenge() -> bytes:
    """Returns a challenge that was never used before."""
    return secrets.token_bytes(CHALLENGE_BYTES)
