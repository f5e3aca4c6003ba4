/** What was taken out: the closed words of `[redacted:<kind>]`. */
export type SecretKind =
  | 'password'
  | 'token'
  | 'secret'
  | 'key'
  | 'header'
  | 'cookie'
  | 'url'
  | 'query'
  | 'jwt'
  | 'private_key'
  | 'hash'

/** Names that end in one of these hold a secret: `DB_PASSWORD`, `vault.token`, `x-api-key`. */
const endings: [pattern: string, kind: SecretKind][] = [
  ['password|passwd|passphrase|passcode|(?<![a-z])pwd|(?<=[_-])(?:pass|pw)|(?<=ssh|become)pass', 'password'],
  ['(?:client|app|shared|signing|webhook)?[_-]?secret(?:[_-]?string|[_-]?key[_-]?base)?', 'secret'],
  [
    '(?:api|access|private|secret|account|signing|encryption|master|license|ssh|storage|sharedaccess|hmac|(?<![a-z])app|(?<![a-z])auth)[_-]?key|sharedaccesssignature',
    'key',
  ],
  ['token', 'token'],
  ['authorization', 'header'],
  ['cookie', 'cookie'],
]

/** One source for texts and for the keys of objects; a name ends here, so `tokens`, `token_type`, `secretName` are none. */
export const secretNamePattern = endings.map(([pattern]) => `(?:${pattern})`).join('|')

const named = endings.map(([pattern, kind]) => [new RegExp(`(?:${pattern})$`, 'i'), kind] as const)

/** Names that look secret and are not: where a list goes on, what a parser met, an operating system's directory. */
const harmless =
  /(?:next|page|continue|continuation|sync|resume|unexpected|public)[_-]?(?:page)?[_-]?(?:token|key)$|^oldpwd$/i

const any = new RegExp(`(?:${secretNamePattern.replaceAll('[_-]', '[ _-]')})$`, 'i')

/** What kind of secret a name promises, or null. */
export function kindOfName(name: string): SecretKind | null {
  if (name.length > 120 || !any.test(name) || harmless.test(name)) return null
  // `accessKey` and `access key` name what `access_key` names.
  const plain = name.replace(/ /g, '_')
  return named.find(([pattern]) => pattern.test(plain))?.[1] ?? null
}

/** Words that say something about a secret instead of being one, and references that only name where it is. */
const words = new Set(
  `none null nil true false yes no undefined empty missing required invalid valid expired unset set changed unchanged
  incorrect wrong rejected denied unknown hidden disabled enabled ok failed accepted optional default not is was has had
  must should will may can cannot for of and or the a an in to at by from with file auto rotated rotate required. expired.
  invalid. string str bytes text bearer basic ***`.split(/\s+/),
)
const reference =
  /^(?:\$[({A-Za-z_]|\((?:empty|none|null|unset|hidden|not|no|masked)\b|\{\{|<[^>]*>?$|%[({]|\*{3,}$|x{3,}$|\[redacted:[a-z_]+\]$|[~^]?\d{1,4}\.\d{1,4}\.\d{1,4}$)/i

export function isNoSecret(value: string): boolean {
  return value === '' || words.has(value.toLowerCase()) || reference.test(value)
}
