"""Words that say little: stop words, and the words of Engram's own trade.

Neither kind ever makes a match alone (recall.md, Routing).
"""
from __future__ import annotations

# Folded words before stemming; contractions as the tokeniser joins them (`don't` is `dont`).
STOP_WORDS = frozenset("""
a about after again all also although always am an and another any anybody anyone anything are arent around as at away
be became because become been before being between both but by came can cannot cant come could couldnt did didnt do does
doesnt doing done dont down during each either else ever every everyone everything few for from further gave get gets
getting give given go goes going gone got had hadnt has hasnt have havent having he her here hers herself hey hi him
himself his how however i id if ill im in into is isnt it its itself ive just know let lets like lot made make makes
many may maybe me might mine more most much must my myself need needs neither never no nor not now of off often oh ok
okay on once one only onto or other others our ours ourselves out over own per perhaps please put quite rather really
said same say says see seem seems she should shouldnt since so some somebody someone something sometimes somewhere
still such sure take tell than thanks that thats the their theirs them themselves then there theres these they theyre
thing things this those though through to together too toward under until up upon us use used uses using usually very
was wasnt way we well went were werent what whatever whats when where whether which while who whom whose why will with
within without wont would wouldnt yes yet you youll your youre yours yourself youve
""".split())

GENERIC_WORDS = frozenset("agent context content engram example knowledge memory memories rule rules skill skills task "
                          "tasks type types workspace project".split())
