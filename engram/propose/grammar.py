"""Tables for reading a statement: which words choose, deny, place, limit; English, Vietnamese, Chinese.

Only words and patterns; `statement.py` reads with them. A row more makes one more wording understood.
Patterns see folded text (lower case, NFKC); Vietnamese with its accents.
"""

from __future__ import annotations

import re

# A marker stands between \x01 and \x02 in the text while it is read.
NEG, ENDED, INSTEAD, RATHER = "neg", "ended", "instead", "rather"

# Order matters: the longer wording first. Each row: pattern, what stands there instead.
_SPACED = (
    # switches name the old choice and the new one
    (
        r"\b(?:switch(?:ed|es)?|migrat(?:e|ed|es)|mov(?:e|ed|es)|chang(?:e|ed|es))\b"
        r"(?P<o>(?: (?!from\b)[^\s,;]+){0,6}) from (?P<a>[^,;]{1,60}?) to (?P<b>[^\s,;]+)",
        r"use\g<o> \g<b> {instead} \g<a> , ",
    ),
    (r"\breplaced? (?P<a>[^,;]{1,60}?) (?:with|by) (?P<b>[^\s,;]+)", r"use \g<b> {instead} \g<a> , "),
    (r"\b(?:replaces|supersedes|takes over from)\b", "{instead}"),
    (r"\bprefer(?:red|s)? (?P<b>[^,;]{1,60}?) (?:over|to) (?P<a>[^\s,;]+)", r"prefer \g<b> {instead} \g<a> , "),
    (r"chuyển từ (?P<a>[^,;]{1,40}?) sang (?P<b>[^\s,;]+)", r"dùng \g<b> {instead} \g<a> , "),
    (r"thay (?P<a>[^,;]{1,40}?) bằng (?P<b>[^\s,;]+)", r"dùng \g<b> {instead} \g<a> , "),
    (r", (?:and |but )?no longer (?=[^\s,;]+(?: [^\s,;]+)?(?:$|[,;.]| for | in | on ))", " {instead} "),
    (r"\b(?:instead of|rather than|in place of|in lieu of)\b", "{instead}"),
    (r", (?:and |but )?not (?=[^\s,;]+(?: [^\s,;]+)?(?:$|[,;.]| for | in | on | when | to ))", " {instead} "),
    (r"\b(?:thay vì|thay cho)\b|(?:, )?chứ không (?:phải |dùng )?", "{instead}"),
    # what has ended
    (r"\b(?:(?:is|are) no longer|no longer|not any ?more|not anymore)\b", "{ended}"),
    (r"\b(?:stop|stopped|quit|cease) (?=\w+ing\b)", "{ended} "),
    (r"\b(?:deprecated|discontinued|retired|phased out)\b", "{ended}"),
    (r"\bkhông còn\b|\bngừng\b|\bngưng\b|\bthôi không\b", "{ended}"),
    # negation; a negated verb stays behind it
    (r"\b(?:do|does|did|must|should|shall|may|can|could|will|would|is|are|was|were|need|has|have) ?n[o'’]t\b(?: ever\b)?", "{neg}"),
    (
        r"\b(?:don['’]?t|doesn['’]?t|didn['’]?t|mustn['’]?t|shouldn['’]?t|shan['’]?t|can['’]?t|cannot|couldn['’]?t|won['’]?t|wouldn['’]?t|isn['’]?t|aren['’]?t|wasn['’]?t|needn['’]?t)\b",
        "{neg}",
    ),
    (
        r"\bavoid (?=\w+ing\b)|\brefrain from\b|\bnever\b|\bneither\b|\bnor\b|\bnot\b"
        r"|\b(?:is|are) (?:forbidden|prohibited|disallowed|banned)\b",
        "{neg} ",
    ),
    (r"\b(?:forbid|prohibit|disallow|ban)(?:s)?\b|\bno (?=\w)", "{neg} "),
    (r"\bavoid\b", "{neg} use"),
    (r"\bdisabl(?=e[sd]?\b|ing\b)", "{neg} enabl"),
    (r"\bexclud(?=e[sd]?\b|ing\b)", "{neg} includ"),
    (r"\bkhông bao giờ\b", "{neg}"),
    (r"\bkhông (?:được|nên|phải|cần)\b|\b(?:đừng|chớ|cấm|không(?! gian))\b", "{neg}"),
    (r"\btránh\b(?: dùng\b| sử dụng\b)?", "{neg} dùng"),
    # one word for what is one word
    (r"\bsử dụng\b|\bxài\b", "dùng"),
    (r"\bưu tiên\b", "ưutiên"),
    (r"\bcài đặt\b", "càiđặt"),
    (r"\bgiới hạn\b", "giớihạn"),
    (r"\b(?:được )?(?:lưu trữ|lưu|ghi|đặt|triển khai|chạy|nằm|viết|gửi|đẩy)(?= (?:trong|trên|ở|tại|vào|lên|bằng|tới|đến)\b)", "đặttại"),
    (r"\b(?:bring|make) sure\b|\bensure\b", "ensure"),
    (r"\b(?:at most|no more than|up to|maximum of|tối đa)\b", "atmost"),
    (r"\b(?:at least|no less than|minimum of|ít nhất|tối thiểu)\b", "atleast"),
    (r"\b(?:defaults? to|set to|go with|opt for|standardi[sz]e on|settle on|rely on|relies on)\b", "choose"),
    (r"\be-mail", "email"),
)
_UNSPACED = (
    (r"从(?P<a>[^，。；]{1,20}?)(?:改为|改用|换成|换到|迁移到|切换到)(?P<b>[^，。；]+)", r"{use}\g<b>{instead}\g<a>，"),
    (r"用(?P<b>[^，。；]{1,20}?)(?:代替|取代|替换)(?P<a>[^，。；]+)", r"{use}\g<b>{instead}\g<a>，"),
    (r"而不是|而非|，不(?:是|用|使用)", "{instead}"),
    (r"不再|已停用|已弃用|已废弃|停止", "{ended}"),
    (
        r"不要|不得|不能|不可以?|不应该?|不應|禁止|切勿|请勿|請勿|严禁|避免|无需|無需|没有|從不|从不|永不|绝不|不(?![同仅过])|勿|(?<![级類类特分区區个性])[别別](?![名的])",
        "{neg}",
    ),
    (r"必须|必須|应该|應該|应当|始终|始終|总是|總是|一律|务必|務必|一定要|请(?!求)|請(?!求)|我们|我們|所有|的|了|都", ""),
    (r"使用|采用|採用|选用|選用|改用|优先用|首选|(?<![应應作费費信通引调調占佔可])用(?![户戶例途法量])", "{use}"),
    (r"默认为|默認為|设置为|設置為|设为|設為|等于|等於|是|(?<![行因])[为為]", "{is}"),
    (r"(?:存储|存儲|保存|存放|存|部署|运行|運行|托管|放|写|寫|发送|發送)(?:在|到|入|于|於)", "{placed}"),
    (r"最多|不超过|至多|上限", "{atmost}"),
    (r"最少|至少|不少于", "{atleast}"),
)

DROPPED = frozenset(
    """
a an the this that these those please always must should shall will would strictly really just simply also we
allow allowed allows permit permitted permits
you your our they their it its us everyone all any each be been being has have had do does did currently now today
can could may might luôn hãy phải nên cần các những này đó thì chúng ta tôi được bị đã đang sẽ rồi và mọi
""".split()
)
DETERMINERS = frozenset("a an the this that these those our your its their each every any all".split())

# Words of place and time that say where a statement holds rather than what it says.
PREPOSITIONS = frozenset(
    """
in on at to for of by from into via with within through during under over about as per when while if where after before until
without except unless between against across toward towards upon
trong trên cho với theo khi ở tại vào từ của bằng qua sau trước đến tới lên nếu ngoại để
在 对 當 当 于 於 从 從 向 给 給
""".split()
)
# Of these, the ones whose exchange changes the meaning: they count as words of the statement.
TELLING = frozenset("前 后 後 before after without except unless until only trước sau trừ atmost atleast every if".split())
RESTRICTING = frozenset(
    "of của in on for when while during under only if where at from inside trong trên cho khi ở tại nếu 在 对 当".split()
)
# Of these, the ones behind which a choice may stand: "stored in …", "built with …".
SETTLING = frozenset(
    """
in on at to by from into via with within through over as under after before until between against toward towards
trong trên với theo ở tại vào từ bằng qua sau trước tới đến lên
""".split()
)
INSTRUMENTS = frozenset("as with via through by over bằng qua với".split())
HOLDING = frozenset("in on at within inside when while during under trong trên ở tại khi".split())
EXCEPTING = frozenset("except unless trừ besides".split())

CHOOSING = frozenset("use prefer choose pick adopt select standardize dùng ưutiên chọn".split())
# Verbs whose object is what the statement is about and whose place is the choice: "store sessions in Redis".
PLACING = frozenset(
    """
store keep put save place write written built held sent made drawn cut indent write send deploy publish host log push ship move
name call set serve build format locat install
manag load persist cach own route maintain encod sort run live listen sit go land reside stay hang viết lưu đặt ghi gửi đẩy
đặttại
""".split()
)
COPULAS = frozenset("is are was were equals means = : là 是 placed choose become".split())
# Verbs that take one more object without losing the first: "run the linter", "run the tests".
ADDING = frozenset(
    """
run check test call add review notify update include ask tell read document restart verify validate lint rebuild clean delete
remove create need require support handle feed emit expose provide contain depend import export fetch trigger start
open close merge commit rotate retry invoke warn ensure follow monitor cover scan drop pass wait return send wrap escape
quote quot sign encrypt back copy sync archive expire allow accept reject throw raise mock stub squash rebase tag label pin bump
giớihạn chạy kiểm gọi thêm xoá xóa sửa đọc viết cập mở đóng gộp ký
""".split()
)
# Verbs that one subject alone can have: whose subject it is, is the choice.
OWNING = frozenset("own own lead maintain manag sở".split())
MODALS = frozenset(["to"])

ENVIRONMENTS = frozenset(
    """
stag staging production prod dev develop development test qa ci local locally linux macos mac windows ios android arm
arm64 amd64 x86 browser server client frontend backend mobile desktop web laptop eu us asia
""".split()
)
TIMES = frozenset(
    """
monday tuesday wednesday thursday friday saturday sunday nightli hourli daili weekli monthli yearli quarterli morning evening
night noon midnight weekend weekday january february march april may june july august september october november december
nightly hourly daily weekly monthly yearly quarterly
""".split()
)
# Things of one kind, of which a project usually picks one: two of a row exclude each other, of two rows they don't.
FAMILIES = tuple(
    row.split()
    for row in (
        "npm pnpm yarn bun",
        "pip uv poetry pipenv conda rye",
        "maven gradle ant sbt",
        "make just bazel buck cmake ninja meson",
        "postgres postgresql mysql mariadb sqlite oracle mssql sqlserver cockroachdb mongodb dynamodb cassandra",
        "kafka rabbitmq sqs nats pulsar kinesis activemq",
        "redis memcached valkey hazelcast",
        "jenkins buildkite circleci travis teamcity github gitlab drone actions",
        "docker podman containerd buildah",
        "terraform pulumi cloudformation opentofu cdk ansible",
        "helm kustomize argocd flux",
        "aws gcp azure heroku render vercel netlify fly",
        "tab space spaces tabs",
        "utc gmt local",
        "camelcase snakecase kebabcase pascalcase screamingcase",
        "debug info warn warning trace verbose",
        "jest vitest mocha jasmine ava",
        "pytest unittest nose tox",
        "playwright cypress selenium puppeteer",
        "eslint biome tslint oxlint standard",
        "ruff flake8 pylint",
        "black yapf autopep8",
        "prettier dprint",
        "webpack vite esbuild rollup parcel turbopack",
        "react vue svelte angular solid elm",
        "express fastify koa hapi nestjs",
        "django flask fastapi starlette tornado",
        "rest grpc graphql soap trpc",
        "json yaml toml xml protobuf avro msgpack csv",
        "typescript javascript python go golang rust java kotlin scala ruby php elixir swift csharp dart",
        "sentry rollbar bugsnag honeybadger",
        "prometheus datadog graphite influxdb newrelic",
        "loki elasticsearch splunk opensearch papertrail",
        "vault kms doppler",
        "launchdarkly unleash flagsmith growthbook",
        "sphinx mkdocs docusaurus hugo jekyll gatsby",
        "squash rebase merge",
        "jira linear asana trello",
        "slack teams discord",
        "s3 gcs minio",
        "nginx caddy traefik haproxy apache envoy",
        "ubuntu debian alpine fedora centos",
        "english vietnamese chinese german french spanish",
        "ses sendgrid mailgun postmark",
        "celery sidekiq rq dramatiq",
        "sqlalchemy prisma drizzle typeorm sequelize knex",
        "flyway liquibase alembic",
    )
)
UNITS = frozenset(
    """
s ms m h d second sec minut minute hour day week month year time tri try attempt retri kb mb gb tb kib mib gib byte line
charact character request percent % row item page node replica core worker thread point pixel px column step user seat
giây phút giờ ngày tuần tháng năm lần dòng 秒 分 时 小 天 周 月 年 次 行 个 页
""".split()
)
NUMBERS = {word: str(value) for value, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())} | {
    "fifteen": "15",
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "ninety": "90",
    "hundred": "100",
    "twice": "2",
    "thrice": "3",
}
REASONS = (
    r"(?<=\S)[,;]? (?:because|so that|given that)\b.*|(?<=\S),? to (?:avoid|prevent|reduce|save)\b.*"
    r"|(?<=\S), (?:since|as|so)\b.*|(?<=\S),?(?<! thay)(?<!^thay) (?:bởi vì|bởi|vì)\b.*"
    r"|(?<=\S)[，,]?(?:因为|因為|由于|由於|以便).*"
)

_compiled = {}


def rewrite(text):
    """Return folded text with the phrases of the tables replaced by markers and single words."""
    if not _compiled:
        marks = {name: f"\x01{name}\x02" for name in (NEG, ENDED, INSTEAD)} | {
            "use": "\x01use\x02",
            "is": " 是 ",
            "placed": " placed ",
            "atmost": " atmost ",
            "atleast": " atleast ",
        }

        def ready(row):
            pattern, put = row
            for name, mark in marks.items():
                put = put.replace("{" + name + "}", mark)
            return re.compile(pattern), put

        _compiled["spaced"] = [ready(row) for row in _SPACED]
        _compiled["unspaced"] = [ready(row) for row in _UNSPACED]
        _compiled["han"] = re.compile("[\u3400-\u9fff]")
    for pattern, put in _compiled["spaced"]:
        text = pattern.sub(put, text)
    if _compiled["han"].search(text):
        for pattern, put in _compiled["unspaced"]:
            text = pattern.sub(put, text)
    return text
