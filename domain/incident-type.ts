import { incidentType } from './incident.ts'
import { productNames } from './product-names.ts'
import { questionType } from './question.ts'
import { trustLostType } from './trust.ts'

/**
 * Derives the incident type from the labels of an alert: `incident_type`, otherwise the name of the
 * alert in snake_case. Acronyms and product names become words (`MySQLDown` becomes `mysql_down`),
 * and punctuation becomes `_`. If the name is too long, or has no ASCII letter or digit, six
 * hexadecimal digits are added to keep types distinct. An alert without a name has the type
 * `unknown`.
 */
export function incidentTypeOf(labels: Record<string, string>, name: string): string {
  const given = [labels.incident_type, name].find((candidate) => candidate?.trim())
  if (!given) return 'unknown'
  const type = toType(given, splitWords(given.trim()))
  return reservedTypes.includes(type) ? `alert_${type}` : type
}

/** Types of incidents that no alert opens. No alert can have one of these types. */
const reservedTypes: readonly string[] = [questionType, 'manual_change', trustLostType]

/** Marks the edge of a word at which the name itself has no separator. */
const seam = '\u0001'
const products = new Map(productNames.map((name) => [name.toLowerCase(), name]))
// Tries the longer of two product names first, if one begins with the other.
const productForm = new RegExp(
  productNames
    .toSorted((a, b) => b.length - a.length)
    .map((name) => (/^[a-z]/.test(name) ? `(?<![A-Za-z])${name}` : name))
    .join('|')
    .replace(/^.*$/s, (names) => `(?:${names})(?![a-z])`),
  'g',
)

function splitWords(name: string): string {
  return (
    name
      .replaceAll(productForm, (product, at: number) => {
        const isNumbered = /\d/.test(name[at + product.length] ?? '')
        return `${seam}${product.toLowerCase()}${isNumbered ? '' : seam}`
      })
      // Ends an acronym before the word that follows it. `VMs`, `NTPd` and `IPv6` are single words.
      .replaceAll(/([A-Z]+)([A-Z](?!(?:[sd](?![a-z])|v\d))[a-z])/g, '$1_$2')
      .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
      .replaceAll(new RegExp(`^${seam}+|${seam}+$`, 'g'), '')
      .replaceAll(new RegExp(`[${seam}_\\s.-]*${seam}[${seam}_\\s.-]*`, 'g'), '_')
  )
}

/** Splits the name of an alert into words as versions up to 0.2 did. */
function splitFormerly(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
}

function toType(given: string, words: string): string {
  const snake = words.replaceAll(/[\s.-]+/g, '_').toLowerCase()
  if (incidentType.safeParse(snake).success) return snake
  const plain = snake.replaceAll(/[^a-z0-9]+/g, '_').replaceAll(/^_+|_+$/g, '')
  if (plain === '') return `alert_${markOf(given)}`
  return plain.length <= maxTypeCharacters
    ? plain
    : `${plain.slice(0, maxTypeCharacters - 7).replace(/_+$/, '')}_${markOf(given)}`
}

const maxTypeCharacters = 48

/** Hashes a text to six hexadecimal digits (FNV-1a, 32 bits). */
function markOf(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash.toString(16).padStart(8, '0').slice(0, 6)
}

const maxSpelled = 10
const maxKnown = 2_000
const known = new Map<string, readonly string[]>()

/**
 * Lists the spellings of this type in versions up to 0.2, one for each way to capitalize the words
 * of the alert's name. Those versions put no `_` after an acronym and put one into product names
 * (`my_sqldown` for `mysql_down`). Settings for these spellings still apply.
 */
export function formerTypes(type: string): readonly string[] {
  const cached = known.get(type)
  if (cached) return cached
  const words = type.split('_')
  let spelled: string[][] = [[]]
  for (const word of words.slice(0, maxSpelled))
    spelled = spelled.flatMap((before) => spellingsOf(word).map((each) => [...before, each]))
  const rest = words.slice(maxSpelled).map(capitalize)
  // Builds the alert's name as one word, as most senders write it, and as several words.
  const names = spelled.flatMap((parts) => ['', ' '].map((between) => [...parts, ...rest].join(between)))
  const former = names.flatMap((name) => {
    const before = toType(name, splitFormerly(name))
    return before !== type && incidentTypeOf({}, name) === type ? [before] : []
  })
  const found = [...new Set(former)]
  if (known.size >= maxKnown) known.clear()
  known.set(type, found)
  return found
}

const capitalize = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)

/**
 * Lists ways to write a word: capitalized, as an acronym if it is short enough, and as its product
 * is written.
 */
function spellingsOf(word: string): string[] {
  const [, letters = '', digits = ''] = /^(.*?)(\d*)$/.exec(word) ?? []
  const named = products.get(letters)
  const product = named === undefined ? null : named + digits
  const acronym = /^[a-z]{2,6}$/.test(word) ? [word.toUpperCase()] : []
  return [...new Set([capitalize(word), ...acronym, ...(product ? [product] : [])])]
}

/**
 * Whether `said` is this type, in the current spelling or an old one. Compares the letters first,
 * so that old spellings are seldom computed.
 */
export function isType(said: string, type: string): boolean {
  if (said === type) return true
  return said.replaceAll('_', '') === type.replaceAll('_', '') && formerTypes(type).includes(said)
}
