import { rules } from '@secretlint/secretlint-rule-preset-recommend'
import { looksEncoded, looksRandom, mark, ownId, type SecretKind } from './redact-names.ts'
import type { SecretRule } from './redact-rules.ts'

/**
 * Tokens with a prefix that their provider documents. The tokens may be shorter than a scanner of
 * repositories requires, because a log may cut a token, and a shortened token is still dangerous.
 * `chance` requires a digit, so that no ordinary word matches.
 */
const start = '(?<=^|[^A-Za-z0-9_-]|\\\\[nrtbf]|\\\\u[0-9a-fA-F]{4})'
const chance = '(?=[\\w.~+/=-]{0,80}\\d)'
const word = (length: number) => `${chance}[A-Za-z0-9_-]{${length},}`
const dotted = (length: number) => `${chance}[A-Za-z0-9_.-]{${length},}`
const hex = (length: number) => `[a-f0-9]{${length},}`

const prefixes: readonly [prefix: string, rest: string][] = [
  // Code hosting and delivery.
  ['gh[pousr]_', '[A-Za-z0-9]{20,}'],
  ['github_pat_', '[A-Za-z0-9_]{20,}'],
  ['gl[a-z]{2,6}-', dotted(16)],
  ['GR1348941', word(16)],
  ['ATATT3|ATCTT3|ATBB|ATOB', `${chance}[A-Za-z0-9_=-]{16,}`],
  ['bkua_|bkaj_|CCIPAT_|sgp_|sq[apu]_', word(20)],
  ['npm_', '[A-Za-z0-9]{30,}'],
  ['pypi-', '[A-Za-z0-9_-]{30,}'],
  ['rubygems_', hex(40)],
  ['CLOJARS_', '[a-z0-9]{40,}'],
  ['ico-', '[A-Za-z0-9]{32}(?![A-Za-z0-9])'],
  ['v1\\.(?=[a-f0-9]{40}(?![a-f0-9]))', hex(40)],
  ['oy2', '[a-z0-9]{43}(?![a-z0-9])'],
  ['dckr_(?:pat|oat)_', word(20)],
  ['API-(?=[A-Z0-9]{26}(?![A-Za-z0-9]))', '[A-Z0-9]{26}'],
  ['p8e-|ptr_|BBDC-|SWMTKN-1-', `${chance}[A-Za-z0-9+/=_-]{28,}`],
  ['AKCp|cmVmdGtu', `${chance}[A-Za-z0-9]{40,}`],
  // Clouds and platforms.
  ['A(?:3T[A-Z0-9]|KIA|GPA|IDA|ROA|IPA|NPA|NVA|SIA|BIA|CCA)', '[A-Z0-9]{16}(?![0-9A-Za-z])'],
  ['ABSK|bedrock-api-key-|IQoJb3JpZ2luX2Vj', `${chance}[A-Za-z0-9+/=]{32,}`],
  ['[A-Za-z0-9_~.]{3}\\dQ~', '[A-Za-z0-9_~.-]{30,}'],
  ['GOOG1', '[A-Z0-9]{20,}'],
  ['SCW(?=[A-Z0-9]{17}(?![A-Za-z0-9]))', '[A-Z0-9]{17}'],
  ['K00\\d(?=[A-Za-z0-9+/]{27}(?![A-Za-z0-9+/]))', '[A-Za-z0-9+/]{27}'],
  ['S(?=[AUOCNX][A-Z2-7]{54,56}(?![A-Za-z0-9]))', '[A-Z2-7]{55,57}'],
  ['st\\.(?=[a-f0-9]{24}\\.)', dotted(60)],
  ['4b1d(?=[A-Za-z0-9]{38}(?![A-Za-z0-9]))', word(38)],
  ['(?:sc|ext|scauth|authress)_(?=[a-z0-9]{5,30}\\.[a-z0-9]{4,6}\\.acc[_-])', '[A-Za-z0-9+/_=.-]{40,}'],
  ['[A-Za-z0-9]{6}_(?=[A-Za-z0-9]{29}_mmk)', word(33)],
  ['AQ(?=[A-Za-z0-9+/]{36}==)', '[A-Za-z0-9+/]{36}=='],
  ['AIza', '[0-9A-Za-z_-]{35}'],
  ['ya29\\.|GOCSPX-|1//0', word(20)],
  ['do[oprt]_v1_', hex(40)],
  ['cf(?:k|ut|at)_|v1\\.0-', word(24)],
  ['tskey-(?:[a-z]{2,12}-)?', word(10)],
  ['hv[sbr]\\.|[sbr]\\.(?=[A-Za-z0-9]{24}(?![A-Za-z0-9._-]))', dotted(20)],
  ['pul-|pnu_|tfp_|dp\\.(?:pt|st|sa|ct|scim|audit)\\.(?:[a-z0-9_-]{2,35}\\.)?', word(20)],
  ['[A-Za-z0-9]{14}\\.atlasv1\\.', word(40)],
  ['vc[a-z]_|vercel_blob_rw_|nfp_|sbp_|HRKU-|rnd_', word(20)],
  ['fm[12]_|fo1_', `${chance}[A-Za-z0-9_+/=,-]{20,}`],
  ['pscale_(?:tkn|pw|oauth)_', dotted(20)],
  ['dapi|dkea|dose', '[a-f0-9]{32}(?:-\\d)?'],
  ['sha256~', '[A-Za-z0-9_-]{43}'],
  ['K10[a-f0-9]{40,}::', '\\S{8,}'],
  ['ops_eyJ', '[A-Za-z0-9_=-]{50,}'],
  ['A3-', '[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}'],
  ['LTAI', `${chance}[A-Za-z0-9]{16,24}(?![A-Za-z0-9])`],
  ['AQVN|ngrok_(?:api|authtoken)_|AKID(?=[A-Za-z0-9]{32}(?![A-Za-z0-9]))', word(32)],
  // Monitoring and alerting.
  ['gl(?:sa|c)_|eyJrIjoi', `${chance}[A-Za-z0-9_=+/]{24,}`],
  ['NR(?:AK|JS|II|RA|IQ)-', word(16)],
  ['sntry[su]_', `${chance}[A-Za-z0-9_=+/-]{32,}`],
  ['dt0[cs]0\\d\\.', dotted(40)],
  ['PMAK-|pdus?\\+|u\\+(?=[A-Za-z0-9_]{18}(?![A-Za-z0-9]))', `${chance}[A-Za-z0-9_+-]{18,}`],
  ['hcp_|phx_|phc_|hc[a-z][ilm]k_|pylf_v\\d_', `${word(24)}(?::[A-Za-z0-9]{16,})?`],
  ['xa[ap]t-|rootly_|e2b_|csk-|fc-(?=[a-f0-9]{32})', `${chance}[a-f0-9-]{32,}|csk-[a-z0-9]{40,}`],
  ['(?:[a-f0-9]{32}|[a-z0-9]{6}[a-f0-9]{26})FFFFN|[a-f0-9]{36}N', 'RAL'],
  // Providers of language models.
  ['sk-(?:ant-|proj-|svcacct-|or-|live-|admin-)?', `(?=[A-Za-z_-]{0,80}\\d)[A-Za-z0-9_-]{20,}`],
  ['hf_|api_org_', '[A-Za-z0-9]{30,}'],
  ['gsk_|r8_|pplx-|xai-|fw_|nvapi-|tgp_v1_|tvly-|pcsk_|lsv2_(?:pt|sk)_', word(24)],
  // Messaging and payments.
  ['xox[abceoprs](?:\\.xox[bp])?-', '[A-Za-z0-9-]{10,}'],
  ['xapp-', '[A-Za-z0-9-]{10,}'],
  ['[sr]k_(?:live|test|prod)_', '[0-9A-Za-z]{10,}'],
  ['whsec_', '[0-9A-Za-z+/=]{20,}'],
  ['SG\\.', '[\\w-]{16,32}\\.[\\w-]{16,64}'],
  ['SK', '[a-f0-9]{32}(?![0-9A-Za-z])'],
  ['(?:pub)?key-', '[a-f0-9]{32}(?![0-9A-Za-z])'],
  ['xkeysib-', '[a-f0-9]{40,}(?:-[A-Za-z0-9]{10,})?'],
  ['[a-f0-9]{32}-us', '\\d{1,2}(?!\\d)'],
  ['mlsn\\.', hex(40)],
  ['EAA[A-Z]', word(60)],
  ['1000\\.(?=[a-f0-9]{32}\\.)', dotted(60)],
  ['00D[A-Za-z0-9]{12,15}!', dotted(60)],
  ['VF\\.(?:[A-Z]{2}\\.)?(?=[a-f0-9]{24}\\.)', dotted(36)],
  ['endr\\+', word(16)],
  ['tk_(?=[a-z0-9]{29}(?![A-Za-z0-9]))', word(29)],
  ['sq0(?:atp|csp|idp)-', word(20)],
  ['EAAA[A-Za-z]', word(50)],
  ['shp(?:at|ca|pa|ss)_', '[a-fA-F0-9]{32}'],
  ['rdme_|EZ[AT]K|FLWSECK(?:_TEST)?-', word(20)],
  ['[MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.', '[A-Za-z0-9_-]{27,}'],
  ['(?:bot)?\\d{8,10}:AA', '[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])'],
  ['fio-u-|tk-us-', word(40)],
  ['[ps]at\\.(?=[\\w-]{22}\\.[a-f0-9]{24}\\.)', dotted(50)],
  ['os_v2_(?:app|org)_', '[a-z0-9]{60,}'],
  ['aio_(?=[A-Za-z0-9]{28}(?![A-Za-z0-9]))', word(28)],
  ['cio(?=[A-Za-z0-9]{32}(?![A-Za-z0-9]))', word(32)],
  ['re_(?=[A-Za-z0-9]{8}_)', word(28)],
  ['(?:shippo|duffel)_(?:live|test)_', word(32)],
  ['(?:live|test)_(?=[a-f0-9]{35}(?![a-z0-9]))', hex(35)],
  ['access-(?:sandbox|development|production)-', '[a-f0-9-]{36}'],
  ['1/(?=\\d{15,16}:)', '\\d{15,16}:[a-f0-9]{32}'],
  // Office software and tools.
  ['lin_(?:api|oauth)_', word(20)],
  ['CFPAT-', word(40)],
  ['pat-(?:na|eu)\\d-', '[a-f0-9-]{36}'],
  ['00(?=[A-Za-z0-9_-]{40}(?![A-Za-z0-9_-]))(?=[a-z0-9_-]{0,39}[A-Z])(?=[A-Z0-9_-]{0,39}[a-z])', word(40)],
  ['ntn_|secret_(?=[A-Za-z0-9]{43}(?![A-Za-z0-9]))', `${chance}[A-Za-z0-9]{30,}`],
  ['fig[a-z]{1,2}_', word(20)],
  ['sl\\.(?:u\\.)?', `${chance}[A-Za-z0-9_-]{100,}`],
  ['pat(?=[A-Za-z0-9]{14}\\.)', '[A-Za-z0-9]{14}\\.[a-f0-9]{64}'],
  ['(?:sdk|mob|api)-(?=[a-f0-9]{8}-[a-f0-9]{4}-4)', '[a-f0-9-]{36}'],
  // Keys that are a single word.
  ['AGE-SECRET-KEY-1', '[0-9A-Z]{50,}'],
  ['AGE-PLUGIN-[A-Z]{2,20}-1', '[0-9A-Z]{20,}'],
  ['nst_', '[A-Za-z0-9_-]{20,}'],
]

const alternatives = prefixes.map(([prefix, rest]) => `(?:${prefix})${rest}`).join('|')

export const prefixRule: SecretRule = { kind: 'token', pattern: new RegExp(`${start}(?:${alternatives})`, 'g') }

/** Matches keys of Azure with a signature in the middle, and what follows it. */
export const signedRule: SecretRule = {
  kind: 'token',
  test: /AZDO|\+A(?:St|CR|MC|Eh|Sb|Rm)|Az(?:Fu|Se|Ca)|ACDb|AIoT/,
  pattern:
    /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{32,80}(?:AZDO|\+A(?:St|CR|MC|Eh|Sb|Rm)|Az(?:Fu|Se|Ca)|ACDb|AIoT)[A-Za-z0-9+/]{4,12}={0,2}(?![A-Za-z0-9+/=])/g,
}

/** Matches words before `_` that announce a secret, if only small letters and digits follow. */
const says = /(?:^|_)(?:sec|secret|live|test|prod|sk|pat|sat|oat|token|tok|api|key)_$|[a-z]api_$/

/**
 * Matches the general form of a token: a word in small letters, `_` or `-`, and random characters.
 * Tokens of new providers have this form too.
 */
export const classRule: SecretRule = {
  kind: 'token',
  test: /[_-][A-Za-z0-9]{14}/,
  pattern: new RegExp(
    `${start}(?<word>(?!sha\\d|md5|h1)[a-z][a-z0-9]{1,11}(?:[_-][a-z0-9]{1,8}){0,3}[_-])(?<value>[A-Za-z0-9]{14,}(?:[_-][A-Za-z0-9]{4,}){0,3})(?![A-Za-z0-9])`,
    'g',
  ),
  replace: (match, { word = '', value = '' }) =>
    !ownId.test(match) &&
    (looksEncoded(value, 24) || (says.test(word) && looksRandom(value, word.includes('_live_') ? 14 : 16)))
      ? mark('token')
      : match,
}

const anyPrefix = new RegExp(`${start}(?:${alternatives})`)

/** Whether the text contains a token with a known prefix. */
export const holdsPrefix = (text: string): boolean => anyPrefix.test(text)

/**
 * Tokens of secretlint's public rules, whose version the lock file pins; the rules are updated when
 * providers change their tokens. The rules only find the place; our code redacts.
 */
type ListedRule = (typeof rules)[number]
type Scanner = { file?(source: unknown): unknown }

const prefix = '@secretlint/secretlint-rule-'
export const listedRules: readonly string[] = rules.map(({ meta }) => meta.id.replace(prefix, ''))

/**
 * Rules of secretlint that are not used, with the reason. `filter-comments` lets a text disable
 * rules. The other unused rules remove more than the secret, or depend on file names; our own rules
 * cover the same secrets.
 */
export const unusedRules: ReadonlyMap<string, string> = new Map([
  ['filter-comments', 'a comment in a text would switch the rules off'],
  ['basicauth', 'the rule for addresses takes out the password alone'],
  ['database-connection-string', 'the rule for addresses takes out the password alone'],
  ['privatekey', 'the rule for private keys takes one that is cut off, too'],
  ['gcp', 'looks at files'],
])

/**
 * Patterns by rule: each match of the rule contains a match of the pattern. A rule without a
 * pattern is always tried.
 */
const hints: Readonly<Record<string, RegExp>> = {
  aws: /A3T|A(?:KIA|GPA|IDA|ROA|IPA|NPA|NVA|SIA)|ecret_?[Aa]ccess_?[Kk]ey|SECRET_?ACCESS_?KEY/,
  npm: /npm_|_authToken|x-oauth-basic/,
  slack: /xox|xapp|hooks\.slack/,
  sendgrid: /SG\./,
  openai: /sk-/,
  anthropic: /sk-ant/,
  linear: /lin_/,
  shopify: /shp/,
  github: /gh[pousr]_|github_pat_/,
  '1password': /ops_|A3-/,
  gitlab: /gl[a-z]{2,8}-|GR1348941|_gitlab_session/,
  huggingface: /hf_|api_org_/,
  notion: /ntn_|secret_/,
  grafana: /gl(?:c|sa)_|eyJrIjoi/,
  groq: /gsk_/,
  figma: /fig[a-z]{1,3}_/,
  docker: /dckr_/,
  databricks: /dapi|dkea|dose/,
  stripe: /[sr]k_|whsec_/,
  tailscale: /tskey-/,
  cloudflare: /cf(?:k|ut|at)_/,
  vercel: /vc[a-z]_/,
  'hashicorp-vault': /hv[sbr]\./,
}

type SecretSpan = { start: number; end: number }
let found: SecretSpan[] = []
const context = {
  createTranslator: () => () => ({ message: '', messageId: '' }),
  report: ({ range: [start, end] }: { range: readonly [number, number] }) => void found.push({ start, end }),
  ignore: () => {},
}

const scanners = rules
  .map((rule) => ({ id: rule.meta.id.replace(prefix, ''), rule }))
  .filter(({ id }) => !unusedRules.has(id))
  .map(({ id, rule }) => ({ hint: hints[id] ?? null, scanner: made(rule) }))

function made(rule: ListedRule): Scanner {
  return (rule.create as (context: unknown, options: object) => Scanner)(context, {})
}

const anyListed = new RegExp(
  Object.values(hints)
    .map(({ source }) => source)
    .join('|'),
)
const isAnyAlways = scanners.some(({ hint }) => hint === null)

/** Redacts what the listed rules find. If two rules overlap, both matches are removed. */
export function redactListed(text: string): string {
  if (!isAnyAlways && !anyListed.test(text)) return text
  found = []
  const source = { content: text, contentType: 'text', filePath: '', ext: '' }
  for (const { hint, scanner } of scanners) if (!hint || hint.test(text)) scanner.file?.(source)
  if (found.length === 0) return text
  const sorted = found.sort((a, b) => a.start - b.start)
  let clean = ''
  let at = 0
  for (const { start, end } of sorted) {
    if (start >= at) clean += text.slice(at, start) + mark(kind)
    at = Math.max(at, end)
  }
  return clean + text.slice(at)
}

const kind: SecretKind = 'token'
