"""Signatures and proofs, against published vectors."""

import base64
import unittest

from . import ROOT
from cra_client import InvalidRequest, UnverifiedAnswer
from cra_client import _ed25519 as ed25519
from cra_client._proof import AnswerKey

# RFC 8032, section 7.1: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd"
        "454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030"
        "3dca179c138ac17ad9bef1177331a704",
    ),
]

# docs/src/reference/socket-api.md, "Proofs".
KEY = "ed25519:1Db/HmbMFuIcBArFcfsON8GQT9b6h7uTyp6D5Xuw5U8="
REQUEST = (
    b'{"jsonrpc": "2.0", "id": 7, "method": "session.end", "params": {"session": "s-9"}, '
    b'"challenge": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}'
)
REPLY = (
    b'{"id":7,"jsonrpc":"2.0","result":{},"proof":"cKye6M9wHngDipuraiAo0Zwy7w/XOqBP6+MQkzVKa6kQ6VkpxTMeJGfm65Xa'
    b'FPLv9wT3Om0cIZA5Ffrk6cq6CA=="}'
)
CHALLENGE = bytes(range(32))


class Signatures(unittest.TestCase):
    def test_published_signatures_verify(self) -> None:
        for key, message, signature in VECTORS:
            parts = [bytes.fromhex(part) for part in (key, message, signature)]
            self.assertTrue(ed25519.verify(*parts))

    def test_a_changed_bit_anywhere_does_not_verify(self) -> None:
        key, message, signature = [bytes.fromhex(part) for part in VECTORS[1]]
        for at in range(64):
            changed = bytearray(signature)
            changed[at] ^= 1 << at % 8
            self.assertFalse(ed25519.verify(key, message, bytes(changed)), at)
        for at in range(32):
            other = bytearray(key)
            other[at] ^= 1 << at % 8
            self.assertFalse(ed25519.verify(bytes(other), message, signature), at)
        self.assertFalse(ed25519.verify(key, b"s", signature))
        self.assertFalse(ed25519.verify(key, message, signature[:-1]))
        self.assertFalse(ed25519.verify(key[:-1], message, signature))

    def test_a_second_form_of_a_signature_does_not_verify(self) -> None:
        key, message, signature = [bytes.fromhex(part) for part in VECTORS[1]]
        order = 2**252 + 27742317777372353535851937790883648493
        scalar = int.from_bytes(signature[32:], "little") + order
        self.assertFalse(ed25519.verify(key, message, signature[:32] + scalar.to_bytes(32, "little")))

    def test_keys_of_small_order_and_wrong_encodings_are_no_keys(self) -> None:
        p = 2**255 - 19
        for y in (0, 1, p - 1, p, p + 1, 2**255 - 1):
            self.assertFalse(ed25519.is_valid_key(y.to_bytes(32, "little")), y)
        order_eight = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
        self.assertFalse(ed25519.is_valid_key(order_eight))
        # With the neutral point as key and commitment, a zero scalar would fit every text.
        neutral = (1).to_bytes(32, "little")
        self.assertFalse(ed25519.verify(neutral, b"x", neutral + bytes(32)))


class Proofs(unittest.TestCase):
    def test_the_documented_vector_verifies(self) -> None:
        answer = AnswerKey(KEY).verify(CHALLENGE, REQUEST, REPLY)
        self.assertEqual(answer, b'{"id":7,"jsonrpc":"2.0","result":{}}')
        page = (ROOT.parent.parent / "docs/src/reference/socket-api.md").read_bytes()
        for part in (KEY.encode(), REQUEST, REPLY):
            self.assertIn(part, page)

    def test_another_challenge_request_or_reply_does_not_verify(self) -> None:
        key = AnswerKey(KEY)
        for challenge, request, reply in [
            (bytes(32), REQUEST, REPLY),
            (CHALLENGE, REQUEST + b" ", REPLY),
            (CHALLENGE, REQUEST, REPLY.replace(b"result", b"resulT")),
            (CHALLENGE, REQUEST, b'{"id":7,"jsonrpc":"2.0","result":{}}'),
            (CHALLENGE, REQUEST, b""),
            (CHALLENGE, REQUEST, b'"}'),
        ]:
            with self.assertRaises(UnverifiedAnswer):
                key.verify(challenge, request, reply)
        for at in range(len(REPLY)):
            with self.assertRaises(UnverifiedAnswer):
                key.verify(CHALLENGE, REQUEST, REPLY[:at])

    def test_other_texts_are_no_keys(self) -> None:
        weak = "ed25519:" + base64.b64encode(bytes([1]) + bytes(31)).decode()
        for text in ("", "ed25519:", "ed25519:AAAA", KEY[8:], KEY[:-2], "ed25519:*" + KEY[9:], weak):
            with self.assertRaises(InvalidRequest):
                AnswerKey(text)
        AnswerKey(KEY + "\n")


if __name__ == "__main__":
    unittest.main()
