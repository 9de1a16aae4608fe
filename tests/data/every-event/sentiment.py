"""Scores an input: minus one for each unkind word, by the number of words. Answers whether it is below the threshold."""
import json, sys

question = json.load(sys.stdin)
words = question["input"]["content"].split()
score = -sum(word in ("awful", "hate") for word in words) / max(len(words), 1)
print(json.dumps({"triggered": score < question["params"]["threshold"], "reason": f"score {score}"}))
