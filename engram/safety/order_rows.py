"""The table of orders to the reader: ignore your instructions, be somebody else, chat-role tags and lines.

Knows sentences only. A row is ``(label, words, pattern, check)``: a text is searched with the pattern when its lower-case
form holds one of the words; the check looks at what stands around a match. Gaps are bounded, repetitions never nest.
"""

from __future__ import annotations

import re

from engram.safety.patterns import Pattern

_WHAT = (r"instructions?|instruct(?:ed|ions)|prompts?|directives?|guidelines?|orders|guardrails?|programming|training|persona|"
         r"system messages?|safety (?:rules?|polic(?:y|ies)|filters?|measures?)")
_LOOSE = (
    r"rules?|context|constraints?|commands?|restrictions?|polic(?:y|ies)|messages?|conversations?|text|settings|memor(?:y|ies)|content|"
    r"input|limits|limitations"
)
_BEFORE = (
    r"(?:previous(?:ly)?|prior|earlier|above|preceding|foregoing|past|former|existing|original|initial|last|old|given|aforementioned)"
)
_NOT = Pattern(
    r"(?:\bnever|\bnot|n't|n\u2019t|\bcannot|\bwithout|\bno one should|\bavoid)(?: (?:ever|just|simply|to|silently|blindly|let anyone|let"
    r" a user))?\s*$", re.IGNORECASE
)
_VERB = (
    r"\b(?:ignore|ignoring|disregard|disregarding|forget|override|overrule|bypass|circumvent|discard|neglect|dismiss|skip|drop|delete|"
    r"erase|violate|abandon)\b"
)

_PERSONA = (r"assistant|ai|a\.i\.|bot|chatbot|model|llm|agent|hacker|admin(?:istrator)?|root|superuser|expert|pirate|persona|character|"
            r"human|"
            r"oracle|terminal|interpreter|evil|unrestricted|unfiltered|uncensored|jailbroken|dan\b|simulator|engineer|developer|"
            r"translator|system")


_ADDRESSED = Pattern(
    r"\b(?:(?:you|please|now|always|and|then|so|just)|you (?:must|should|will|shall|can|may|have to|need to|are to|now|also|always))$",
    re.IGNORECASE
)
_LOOSE_END = Pattern(r"\b(?:" + _LOOSE + r")\Z", re.IGNORECASE)


def _unless_negated(match):
    return not _NOT.search(match.string, max(0, match.start() - 40), match.start())


def _meant(match):
    """Take an order unless it is negated; one about rules, settings, text and the like only where it opens a sentence."""
    loose = _LOOSE_END.search(match.group()) and " your " not in match.group()
    return _unless_negated(match) and (not loose or _own_sentence(match))


def _named(match):
    """Take a capitalised name after "you are now", except the ordinary openings of a sentence about the reader's state."""
    return match.group(1)[0].isupper()


def _own_sentence(match):
    """Take an order only where a sentence begins or the reader is addressed."""
    before = match.string[max(0, match.start() - 40):match.start()].rstrip(" \"'\u201c(\u2018")
    return not before or before[-1] in ".!?:;,\n\u2014-" or bool(_ADDRESSED.search(before))


# label, words of which one must be there (lower case), pattern, check
ROWS = (
    ("asks to ignore or override instructions",
     ("ignor", "disregard", "forget", "overrid", "overrul", "bypass", "circumvent", "discard", "neglect", "dismiss", "skip", "drop",
      "delete", "erase",
      "violate", "abandon"),
     _VERB + r"(?: [\w',-]{1,20}){0,4}? (?:(?:all|any|every|each|your|these|those|this|my|its|" + _BEFORE +
      r")(?: [\w',-]{1,20}){0,3}? (?:" + _WHAT + r")"
     r"|(?:your|all|any|the|every)? ?(?:\w{1,12} ){0,2}?" + _BEFORE + r"(?: [\w',-]{1,20}){0,2}? (?:" + _LOOSE + r")"
     r"|your (?:[\w-]{1,20} ){0,2}(?:" + _LOOSE + r"))\b", _meant),
    ("asks to ignore or override instructions", ("ignor", "disregard", "forget", "overrid"),
     r"\b(?:ignore|disregard|forget|override)\b(?: [\w',-]{1,20}){0,2}? the (?:system|hidden|developer|initial|base) (?:prompt|message|"
     r"instructions?)\b"
     r"(?! (?:in|via|with|through|by|using|for|per|from|flag|option|setting|field|when)\b)", _unless_negated),
    ("asks to ignore or override instructions", ("ignor", "disregard", "forget"),
     r"\b(?:ignore|disregard|forget)\b (?:about )?(?:everything|anything|all|whatever|what)(?: of (?:it|that|this))?(?: (?:that|which|"
     r"else))? ?"
     r"(?:you (?:were|have been|are|had been|know|'ve been|learned|have learned)|(?:i|we|they|the user|anyone) (?:said|told|asked|wrote)|"
     r"said|told|written|above|before|prior|"
     r"previously|so far|until now|up to (?:now|this point)|stated)\b", _unless_negated),
    ("asks to ignore or override instructions", ("instruct", "guideline", "rules", "prompt", "restriction"),
     r"\b(?:do not|don't|don\u2019t|stop|no longer|never|refuse to|quit|cease)(?: ever)? (?:follow|following|obey|obeying|comply with|"
     r"complying with|listen to|listening to|adhere to|heed|respect)"
     r"(?: [\w'-]{1,20}){0,2}? (?:your|the (?:system|previous|prior|earlier|above|original|initial)|previous|prior|earlier|any"
     r" (?:previous|prior|earlier|other))"
     r"(?: [\w'-]{1,20}){0,2}? (?:" + _WHAT + "|" + _LOOSE + r")\b", None),
    ("asks to ignore or override instructions", ("instruct", "guideline", "rules", "prompt"),
     r"\b(?:previous|prior|earlier|above|original|all)(?: [\w'-]{1,20}){0,2}? (?:instructions?|guidelines|directives|rules|prompts?)(?:"
     r" [\w'-]{1,20}){0,3}? "
     r"(?:are|is|have been|has been)(?: now| hereby)? (?:void|cancel(?:l)?ed|overridden|null|superseded by (?:this|these|the following)|"
     r"no longer (?:valid|binding|in effect)|obsolete and must be ignored)\b", None),
    ("gives new instructions", ("instruct", "prompt"),
     r"\b(?:your|the|here are|here is|following are|these are)(?: your| the| my)? (?:new|real|true|actual|updated|only|secret) (?:system"
     r" )?(?:instructions?|prompt|orders|directives?)\b"
     r"(?=\s{0,3}(?:[:.,]| (?:are|is|from now|follow|below|say|:)))", None),
    ("gives new instructions", ("instruct", "prompt"),
     r"(?:\A|[.!?:\n]\s{0,4})(?:#{1,6} )?(?:new|updated|begin|start of|end of)(?: new| the| of)?(?: system| context| user)?"
     r" (?:instructions?|prompt|system message)\s{0,3}(?::|--|==)", None),
    ("tries to change the reader's identity", ("you are now", "you're now", "you\u2019re now"),
     r"\byou(?: are|'re|\u2019re) now (?:going to (?:act|be|play|pretend)|acting|operating|playing|pretending|called|named|known as|free"
     r" (?:of|from)|unrestricted|unfiltered|uncensored|"
     r"jailbroken|evil|dan\b|an?\b(?! (?:member|owner|part|maintainer|collaborator|contributor|guest|step|few|little|bit|viewer|"
     r"subscriber)\b)|(?:my|the|our)\b(?: [\w-]{1,20}){0,3}? (?:"
     + _PERSONA + r")\b|in (?:developer|dan|god|debug|jailbreak|admin|unrestricted|sudo) mode)", None),
    ("tries to change the reader's identity", ("you are now", "you're now"),
     r"\b[Yy]ou(?: are|'re) now (?-i:([A-Z][\w-]{1,30}))(?= ?[.,;:!]| (?:and|who|with|without|which|that|a|an)\b|\s*\Z)", _named),
    ("tries to change the reader's identity", ("act as", "behave as", "respond as", "answer as", "speak as", "acting as"),
     r"\b(?:act|behave|respond|answer|speak)(?: exactly| only)? as (?:if you|though you|an?\b(?: [\w-]{1,20}){0,4}? (?:" + _PERSONA +
      r")\b|(?:my|our|the)\b(?: [\w-]{1,20}){0,3}? (?:" + _PERSONA
     + r")\b|(?:root|admin|administrator|dan|superuser)\b)", _own_sentence),
    ("tries to change the reader's identity", ("pretend", "roleplay", "role-play", "role play", "imagine you", "impersonate"),
     r"\b(?:pretend (?:that )?you(?:'re| are| were| have)\b|pretend to be (?:an?|the|my|another|someone|somebody)\b|(?:roleplay|role-play|"
     r"role play) as\b|imagine (?:that )?you(?:'re| are) (?:an?|the|my) "
     r"(?:[\w-]{1,20} ){0,3}?(?:" + _PERSONA + r")\b)", _unless_negated),
    ("tries to change the reader's identity", ("your ",),
     r"\byour (?:new|true|real|actual|only|sole|secret|hidden) (?:purpose|role|identity|goal|mission|persona|name|task|objective|function|"
     r"self|job) (?:is|are|now|will be)\b", None),
    ("tries to change the reader's identity", ("from now on", "no longer", "henceforth", "from this point"),
     r"\b(?:(?:from now on|henceforth|from this point(?: on| onward| forward)?),? you (?:are|will (?:act|be|behave|respond|obey|ignore|"
     r"answer)|must (?:act|obey|ignore|pretend)|act|obey|'re|have no)\b"
     r"|you are no longer (?:an?\b|bound|claude|chatgpt|gpt|copilot|gemini|codex|restricted|limited|required to follow|subject to))", None),
    ("tries to change the reader's identity", ("jailbreak", "dan mode", "do anything now", "developer mode", "god mode"),
     r"\b(?:(?:enable|enter|activate|switch to|you are in|you're in)(?: the)? (?:dan|jailbreak|god|unrestricted|evil) mode|do anything"
     r" now|you(?: are|'re) (?:running )?in developer mode|"
     r"jailbreak (?:yourself|mode (?:on|enabled)))\b", None),
    ("asks for the reader's own prompt", ("prompt", "instruct", "system message"),
     r"\b(?:reveal|print|repeat|show|output|leak|display|disclose|expose|tell|give|send|recite|paste|write out)(?: [\w'-]{1,20}){0,3}?"
     r" your (?:full |entire |complete |hidden |secret |initial |original |own |exact )*"
     r"(?:system |initial |hidden |developer )?(?:prompt|instructions|system message|directives)\b", _unless_negated),
    ("asks to hide an instruction", ("the user", "the human", "anyone"),
     r"\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|alert|alerting|mention|mentioning|reveal|revealing|show|"
     r"showing)(?: it| this| these| that)?(?: to)? ?(?:the user|the human|anyone|the operator)? ?"
     r"(?:about|of)? ?(?:this|these|that) (?:instruction|message|note|order|command|memory|request)s?\b", None),
    # Other languages
    ("asks to ignore or override instructions", ("bỏ qua", "phớt lờ", "quên", "lờ đi"),
     r"(?:bỏ qua|phớt lờ|quên|lờ đi)(?: hết)?(?: (?:mọi|tất cả|các|những|toàn bộ)){1,3} (?:các |những )?(?:hướng dẫn|chỉ dẫn|chỉ thị|yêu"
     r" cầu|mệnh lệnh|lệnh)"
     r"(?: hệ thống)?(?: (?:trước|ở trên|phía trên|đã cho|của bạn))", None),
    ("tries to change the reader's identity", ("bây giờ bạn là", "từ giờ bạn là", "hãy đóng vai"),
     r"(?:(?:bây giờ|từ giờ),? bạn là|hãy đóng vai)\b", None),
    ("asks to ignore or override instructions", ("忽略", "无视", "無視", "不要理会", "忘记", "忘掉"),
     r"(?:忽略|无视|無視|不要理会|忘记|忘掉)(?:掉)?(?:你)?(?:之前|以前|以上|上面|上述|先前|前面|此前|所有|全部|一切|任何|系统){1,3}(?:所有|全部)?的?"
     r"(?:所有|全部)?(?:指令|指示|说明|提示|规则|命令|要求|内容|对话|系统提示)", None),
    ("tries to change the reader's identity", ("你现在是", "从现在开始你", "从现在起你", "假装你是", "扮演"),
     r"(?:你现在是|从现在(?:开始|起),?，?你(?:是|将)|假装你是|请?你?扮演(?:一个|一名))", None),
    ("asks to ignore or override instructions", ("ignor", "olvida", "oublie", "vergiss", "esque"),
     r"\b(?:ignora|ignore|ignorad|ignorez|olvida|oublie[zr]?|ignoriere|vergiss|esqueça|dimentica)(?: (?:por completo|alle|tutte|tutti|"
     r"todas?|todos?|toutes?|tous|le|las?|los|les|os|as|die|sus?|tus|deine|seine|tes|vos|suas|tuas)){0,3} "
     r"(?:(?:vorherigen|bisherigen|vorigen|früheren|obigen|precedenti|anteriores|précédentes?) )?(?:instrucciones|órdenes|instructions|"
     r"consignes|anweisungen|befehle|instruções|istruzioni|reglas|règles|regras)"
     r"(?: (?:anteriores|previas|précédentes|antérieures|acima|precedenti|de arriba|ci-dessus))?", None),
    ("asks to ignore or override instructions", ("игнорируй", "забудь"),
     r"(?:игнорируй(?:те)?|забудь(?:те)?)(?: все)?(?: (?:предыдущие|прошлые|ранние|ваши|твои|системные)){1,2} (?:инструкции|указания|"
     r"правила|команды)", None),
    ("asks to ignore or override instructions", ("無視", "无视", "무시"),
     r"(?:(?:以前|前|上記|これまで)の(?:すべての|全ての)?(?:指示|命令|指令)を(?:すべて|全て)?無視|"
     r"이전(?:의)? ?(?:모든 )?(?:지시|명령)(?:사항)?(?:을|를)? ?"
     r"(?:모두 )?무시)", None),
)

# Looked for in the normalised text itself, with its tags.
TAG_ROWS = (
    ("chat-role tag", ("<|", "<system", "</system", "[inst", "[/inst", "<<sys", "<assistant", "</assistant", "<developer", "<tool",
     "<function", "</function", "<invoke", "<system"),
     r"<\|[a-z_/ ]{2,40}\|>|</?\s{0,3}(?:system|assistant|developer)(?:[_-](?:prompt|message|instructions?|reminder|"
     r"note))?\s{0,3}(?:\s[^<>]{0,100})?>|(?-i:\[/?\s?INST\s?\])|<</?SYS>>|"
     r"</?(?:antml:)?(?:function_calls|function_results|tool_calls?|tool_results?|tool_response|invoke)\b[^<>]{0,100}>", None),
    ("chat-role line", ("human:", "assistant:", "system:", "system prompt:", "system message:", "instruction:"),
     r"(?m)^[ \t>#*_-]{0,12}(?:human|assistant)[*_]{0,2}\s?:[*_]{0,2} (?=\S)|^[ \t>*_-]{0,8}#{1,6} ?(?:system|instruction|assistant|"
     r"human)s?\s?:[ \t]*(?=\S|$)|"
     r"^[ \t>*_\[(-]{0,8}system(?: prompt| message| override)?[*_\])]{0,3}\s?:[*_]{0,2} ?(?:you (?:are|must|will)|ignore|disregard|forget|"
     r"new |override|from now on)", None),
)
