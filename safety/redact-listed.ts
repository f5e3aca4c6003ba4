import { rules } from '@secretlint/secretlint-rule-preset-recommend'
import { mark } from './redact-rules.ts'
import type { SecretKind } from './secret-names.ts'

/**
 * The tokens of the public rule list of secretlint, pinned by this project's lock file: who makes a service changes its tokens, and
 * those who keep that list follow. Its rules only say where; what is done with it is decided here.
 */
type Rule = (typeof rules)[number]
type Scanner = { file?(source: unknown): unknown }

const prefix = '@secretlint/secretlint-rule-'
export const listedRules: readonly string[] = rules.map(({ meta }) => meta.id.replace(prefix, ''))

/**
 * What of the list is not used, and why. `filter-comments` lets a text switch the rules off. The others take out more than the secret,
 * or look at files by their names: our own rules cover what they find.
 */
export const unusedRules: ReadonlyMap<string, string> = new Map([
  ['filter-comments', 'a comment in a text would switch the rules off'],
  ['basicauth', 'the rule for addresses takes out the password alone'],
  ['database-connection-string', 'the rule for addresses takes out the password alone'],
  ['privatekey', 'the rule for private keys takes one that is cut off, too'],
  ['gcp', 'looks at files'],
])

/** Literals, one of which a text holds where the rule finds something. A rule without an entry is always tried. */
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

function made(rule: Rule): Scanner {
  return (rule.create as (context: unknown, options: object) => Scanner)(context, {})
}

const any = new RegExp(
  Object.values(hints)
    .map(({ source }) => source)
    .join('|'),
)
const isAnyAlways = scanners.some(({ hint }) => hint === null)

/** Takes out what the list knows. Where two of its rules overlap, what either of them finds goes. */
export function redactListed(text: string): string {
  if (!isAnyAlways && !any.test(text)) return text
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
