import { formats, rule } from './redact-formats.ts'
import { holdsPrefix, prefixRule, redactListed } from './redact-listed.ts'
import { isNoSecret, kindOfName, mark, rules, type SecretRule } from './redact-rules.ts'

/**
 * What everything that is stored, shown or sent goes through: what cannot be seen is stripped,
 * then secrets are redacted.
 */

/** Terminal sequences: CSI, then strings (OSC, DCS, SOS, PM, APC) up to their end or the next escape, then short ones. */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters this file is about
  /(?:\u001b\[|\u009b)[0-?]{0,64}[ -/]{0,16}[@-~]?|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c\u0018\u001a\n]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]{0,4}[0-~]?/g

/** Controls but tab and newline; line separators; what Unicode says is not shown (bidi, zero-width, tags, fillers). */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  /[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{13430}-\u{1343f}\p{Default_Ignorable_Code_Point}]/gu

/** One cheap look: plain printable text, which is nearly all, needs nothing. */
const odd = /[^\t\n\u0020-\u007e\u00a0-\u00ac\u00ae-\u034e]/

/**
 * Text that shows exactly what it holds, on a page, in a terminal and to a model: escape sequences, controls, bidi marks
 * and invisible characters are gone, U+0000 and lone surrogates are U+FFFD. Tabs stay; newlines too, unless one line is
 * asked for. Combining marks and every script stay as they are. (Unicode 17, UTS 55 and UTR 36.)
 */
export function stripText(text: string, options: { keepNewlines?: boolean } = {}): string {
  const plain = odd.test(text)
    ? text
        .replaceAll('\u0000', '\ufffd')
        .replaceAll('\r\n', '\n')
        .replace(sequences, '')
        .toWellFormed()
        .replace(invisible, '')
    : text
  return options.keepNewlines === false ? plain.replace(/[\n\t]+/g, ' ') : plain
}

/** Secrets that are a word of a command line, or of a line that a program printed, whose name is a letter or none. Each pattern looks at one line. */
const argumentRules: SecretRule[] = [
  rule('password', ['pass:'], /(?<head>(?:-?-pass(?:in|out)?|-k)[ \t=]{1,4}pass:)(?<value>[^\s"'\\;&|<>]{1,256})/g),
  rule(
    'password',
    ['pass '],
    /(?<head>-(?:store|key|src(?:store|key)|dest(?:store|key))pass[ \t]{1,4})(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{0,255})/g,
  ),
  rule(
    'password',
    ['ipmitool', 'ipmi', 'fence_'],
    /(?<head>\b(?:ipmitool|ipmi-\w{2,20}|fence_\w{2,20})\b[^\n|;&]{0,200}?[ \t]-[Pp][ \t]{1,4})(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{0,255})/g,
  ),
  rule(
    'password',
    ['7z', 'rar'],
    /(?<head>\b(?:7z[a-z]?|unrar|rar)[ \t][^\n|;&]{0,200}?[ \t]-p)(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{3,255})/g,
  ),
  rule(
    'password',
    ['sqlplus', 'rman', 'expdp', 'impdp'],
    /(?<head>\b(?:sqlplus|rman|expdp|impdp)[ \t][^\n|;&]{0,100}?[\w.]{1,64}\/)(?<value>[^\s"'\\;&|<>@/]{3,128})(?=@|\s|$)/g,
  ),
  rule(
    'password',
    ['smbclient', 'rpcclient', 'mount.cifs', 'smb'],
    /(?<head>\b(?:smb\w{2,12}|rpcclient|net|wbinfo)\b[^\n|;&]{0,200}?[ \t](?:-U|--user=?)[ \t]{0,4}[\w.\\@-]{1,64}%)(?<value>[^\s"'\\;&|<>]{1,256})/g,
  ),
  rule(
    'password',
    ['sudo'],
    /(?<head>\becho[ \t]{1,8}["']?)(?<value>[^\s"'\\;&|<>$`-][^\s"'\\;&|<>$`]{2,255})(?=["']?[ \t]{0,8}\|[ \t]{0,8}sudo[ \t][^\n|;&]{0,60}-S\b)/g,
  ),
  rule(
    'url',
    ['grant_type=authorization_code'],
    /(?<head>(?<=^|[?&\s"'])code=)(?<value>[^&\s"'\\#<>]{8,1024})(?=[^\s"'\\]{0,400}grant_type=authorization_code)/g,
  ),
  rule('header', ['ApiKey '], /(?<head>\bApiKey[ \t]{1,4})(?<value>(?=[^\s"'\\]{0,200}\d)[A-Za-z0-9+/=_-]{24,512})/g),
  rule('query', ['X-Amz-Signature', 'x-amz-signature'], /(?<head>\bx-amz-signature=)(?<value>[a-f0-9]{64})/gi),
  rule(
    'password',
    ['pass ='],
    /(?<head>(?<=^|\n)[ \t]{0,8}pass[ \t]{1,8}=[ \t]{1,8})(?<value>(?!\d{1,6}\s)[^\s"'\\]{6,512})(?=\s|$)/g,
  ),
  rule(
    'password',
    ['zip -', 'unzip -'],
    /(?<head>\b(?:un)?zip\b[^\n|;&]{0,120}?[ \t]-P[ \t]{0,4})(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{2,255})/g,
  ),
  rule(
    'key',
    ['Unseal Key', 'Recovery Key'],
    /(?<head>\b(?:Unseal|Recovery) Key \d{1,3}: )(?<value>[A-Za-z0-9+/=]{20,128})/g,
  ),
  rule(
    'password',
    ['chpasswd'],
    /(?<head>\becho[ \t]{1,8}["']?[\w.-]{1,64}:)(?<value>[^\s"'\\|]{1,256})(?=["']?[ \t]{0,8}\|[^\n|;&]{0,40}\bchpasswd\b)/g,
  ),
]

/** One look decides for most strings: none of these, and no run as long as a token, is nothing to take out. */
const longRun = /[A-Za-z0-9_-]{43}/

const hint =
  /pass|pwd|secret|token|key|auth|cookie|bearer|eyJ|AKIA|ASIA|AIza|sk[-_]|:\/\/|-----BEGIN|gh[pousr]_|gl[a-z]{2,3}-|xox|xapp|npm_|hv[sbr]\.|do._v1_|pypi-|dapi|nst_|glsa_|shpat_|rk_|whsec_|SG\.|:AA|\$|\*[0-9A-F]{40}|md5|SCRAM|pbkdf2|mysql|mariadb|docker|podman|helm|redis-cli|ldap|mongo|curl|[?&](?:sig|jwt|code)|x-(?:amz|goog)|webhook|@(?:tcp|unix)\(|hooks|response=|machine |login|identified|communit|com2sec|snmp|createUser|requirepass|masterauth|psk|wep|PSK|XAUTH|Static key|Private-Lines|\{(?:S?SHA|SMD5|MD5|CRYPT|PBKDF2)|acl |user |\*:|:\*|:\d+[: ]|EAP |[_-]pw|ipmi|fence_|7z|rar |sqlplus|rman |expdp|smb|rpcclient|sudo|session|unseal|zip |code=|erlang|\{(?:PLAIN|CLEAR)|\* ["]/i

/**
 * Takes secrets out of a text and leaves `[redacted:<kind>]`: passwords by their name, headers, URLs, cloud keys, tokens,
 * password hashes, private keys. A JSON text stays parseable with the same shape. Idempotent, and linear in the text:
 * 1 MB of anything takes well under a second.
 */
export function redact(text: string): string {
  if (text.length < 5) return text
  if (!hint.test(text) && !(text.length >= 20 && holdsPrefix(text)) && !(text.length >= 43 && longRun.test(text)))
    return text
  const json = redactDocument(text)
  if (json !== null) return json
  let before = text
  // What one rule leaves may be what another looks for: as a rule the second round changes nothing.
  for (let round = 0; round < 4; round++) {
    const after = once(before)
    if (after === before) break
    before = after
  }
  return before
}

/** A JSON document is redacted as data, so that no quote can be mistaken; null where the text is not JSON. */
function redactDocument(text: string): string | null {
  if (!/^\s*[{[]/.test(text) || !/[}\]]\s*$/.test(text.slice(-80))) return null
  let data: unknown
  try {
    data = /\d{16}|\d[eE]/.test(text) ? JSON.parse(text, keepDigits as Reviver) : JSON.parse(text)
  } catch {
    return null
  }
  const clean = redactJson(data)
  if (clean === data) return text
  const indent = /^\s*[{[]\n([ \t]{1,8})\S/.exec(text)?.[1]
  return JSON.stringify(clean, null, indent)
}

// `JSON.rawJSON` is in every Node we run on and in no TypeScript library yet.
const raw = JSON as unknown as { rawJSON(text: string): object; isRawJSON(value: unknown): boolean }

type Reviver = (key: string, value: unknown) => unknown

/** A number that doubles cannot hold stays as it is written. */
function keepDigits(_key: string, value: unknown, context: { source: string }): unknown {
  return typeof value === 'number' && String(value) !== context.source ? raw.rawJSON(context.source) : value
}

const everyRule = [...rules, ...formats, ...argumentRules, prefixRule]

function once(text: string): string {
  let clean = text
  for (const { kind, pattern, hints, replace } of everyRule) {
    if (hints && !hints.some((hint) => clean.includes(hint))) continue
    clean = clean.replace(pattern, (match: string, ...rest: unknown[]) => {
      const groups = rest.at(-1)
      if (!replace) return mark(kind)
      return replace(match, groups as Record<string, string | undefined>)
    })
  }
  return redactListed(clean)
}

const deepest = 400
/** What is done to each text first. */
type Each = (text: string) => string
/** Flags whose value is the next element of an argument list. */
const secretFlag = /^--?[a-z-]{0,30}(?:password|passwd|passphrase|secret|token|api-key|access-key|secret-key)$/i

/** Programs that take a password glued to `-p`. */
const gluesPassword = /^(?:\S*\/)?(?:mysql|mariadb)[a-z-]*$|^(?:\S*\/)?sshpass$/

/**
 * The same value without its secrets: texts in it, keys, whatever stands under a name that promises a secret, the values
 * of `{ name, value }` pairs and of flags in argument lists. What holds none is answered as the same object.
 */
export function redactJson<T>(value: T, each: Each = (text) => text): T {
  return deep(value, each, 0) as T
}

function deep(value: unknown, each: Each, depth: number): unknown {
  if (typeof value === 'string') return redact(each(value))
  if (value === null || typeof value !== 'object' || raw.isRawJSON(value)) return value
  if (depth > deepest) return '[nested too deep]'
  if (Array.isArray(value)) {
    const clean = value.map((entry, index) => element(value, entry, index, each, depth))
    return clean.some((entry, index) => entry !== value[index]) ? clean : value
  }
  return deepObject(value as Record<string, unknown>, each, depth)
}

/** One entry of a list, which may be the arguments of a program. */
function element(list: unknown[], entry: unknown, index: number, each: Each, depth: number): unknown {
  if (typeof entry === 'string' && index > 0) {
    const flag = list[index - 1]
    if (typeof flag === 'string' && secretFlag.test(each(flag)) && !entry.startsWith('-'))
      return hide(each(entry), 'password')
    const glued = typeof list[0] === 'string' && /^-p[^[]/.test(entry) && gluesPassword.test(each(list[0]))
    if (glued) return `-p${mark('password')}`
  }
  return deep(entry, each, depth + 1)
}

function deepObject(value: Record<string, unknown>, each: Each, depth: number): unknown {
  const label = value.name ?? value.key ?? value.Name ?? value.Key
  const clean: [string, unknown][] = []
  let changed = false
  for (const [key, entry] of Object.entries(value)) {
    if (entry === undefined) {
      changed = true
      continue
    }
    const pair = typeof label === 'string' && /^value$/i.test(key) ? kindOfName(each(label)) : null
    const shown = each(key)
    const kind = kindOfName(shown) ?? pair ?? kindByForm(shown, entry)
    const name = redact(shown)
    const isData = value.kind === 'Secret' && /^(?:data|stringData)$/.test(shown)
    const kept = isData
      ? hiddenValues(entry, each)
      : kind === null
        ? deep(entry, each, depth + 1)
        : hidden(entry, kind, each, depth)
    if (name !== key || kept !== entry) changed = true
    clean.push([name, kept])
  }
  // `fromEntries` defines, so that `__proto__` is a key like any other.
  return changed ? Object.fromEntries(clean) : value
}

const looksEncoded = /^(?=.{0,200}[\d=])[A-Za-z0-9+/=._-]{12,}$/

/** What documents of a known form hold under names that promise nothing: docker's and kubectl's configuration. */
function kindByForm(name: string, entry: unknown): Kind | null {
  if (typeof entry !== 'string' || !looksEncoded.test(entry)) return null
  return /^(?:auth|identitytoken|registrytoken|client-key-data)$/i.test(name) ? 'token' : null
}

/** The data of a Kubernetes Secret: every value of it, whatever its key is called. */
function hiddenValues(data: unknown, each: Each): unknown {
  if (data === null || typeof data !== 'object') return data
  return Object.fromEntries(
    Object.entries(data).map(([key, entry]) => [
      key,
      typeof entry === 'string' ? hide(each(entry), 'secret') : mark('secret'),
    ]),
  )
}

type Kind = NonNullable<ReturnType<typeof kindOfName>>

/** What stands under a secret's name: texts and lists of texts go, objects are looked into, a number only as password. */
function hidden(entry: unknown, kind: Kind, each: Each, depth: number): unknown {
  if (typeof entry === 'string') return hide(each(entry), kind)
  if (typeof entry === 'number') return kind === 'token' && entry < 1e6 ? entry : mark(kind)
  if (raw.isRawJSON(entry)) return mark(kind)
  if (Array.isArray(entry) && depth < deepest) return entry.map((item) => hidden(item, kind, each, depth + 1))
  return deep(entry, each, depth + 1)
}

function hide(text: string, kind: Kind): string {
  return isNoSecret(text) ? text : mark(kind)
}

/** Whether redaction would change a value: such arguments of a call are refused, because tools take names of secrets. */
export function isSecretive(value: unknown): boolean {
  if (typeof value === 'string') return redact(value) !== value
  return JSON.stringify(redactJson(value)) !== JSON.stringify(value)
}

/**
 * What everything that is stored, shown or sent goes through, in one walk: what cannot be seen is stripped, then secrets
 * are redacted (in this order, or a zero-width character would hide one). Idempotent. Like JSON.stringify it leaves out
 * what JSON cannot say; digests, ids and numbers stay.
 */
export function cleanse<T>(value: T): T {
  return redactJson(value, stripText)
}
