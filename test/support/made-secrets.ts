/**
 * Secrets are made up here by the form that each maker documents, so that no scanner of this
 * repository takes one for a leak: `{a20}` is 20 letters and digits, `{h32}` hexadecimal, `{u16}`
 * upper case and digits, `{l10}` lower case and digits, `{d11}` digits, `{b40}` base64, `{p14}` a
 * password, `{w3}` three words, `{g36}` a UUID. `{-h32}` stands beside a secret and is none.
 */
const alphabets: Record<string, string> = {
  a: 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789',
  h: '0123456789abcdef',
  u: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  l: 'abcdefghijklmnopqrstuvwxyz0123456789',
  d: '123456789',
  b: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  p: 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789!%+._-',
}
const dictionary = 'copper lantern meadow orbit pepper quarry saddle timber velvet willow harbor goblet'.split(' ')

/** A source of figures that gives the same ones for the same seed. */
export function figuresFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    const mixed = Math.imul(state ^ (state >>> 15), state | 1)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

function letters(kind: string, length: number, next: (below: number) => number): string {
  const pick = (from: string, count: number) =>
    Array.from({ length: count }, () => from[next(from.length)] as string).join('')
  if (kind === 'w') return Array.from({ length }, () => dictionary[next(dictionary.length)]).join(' ')
  if (kind === 'g') {
    const hex = (count: number) => pick(alphabets.h as string, count)
    return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`
  }
  const text = pick(alphabets[kind] as string, length)
  // A password of signs at its end would be another case: what closes a sentence is no part of a
  // value.
  const whole = kind === 'p' ? `P${text.slice(1, -1)}4` : text
  return /\d/.test(whole) ? whole : `${whole.slice(0, -1)}7`
}

export function makeSecrets(form: string, next: (below: number) => number): { text: string; secrets: string[] } {
  const secrets: string[] = []
  const text = form.replace(/\{(-?)([ahuldbpwg])(\d+)\}/g, (_match, beside: string, kind: string, length: string) => {
    const made = letters(kind, Number(length), next)
    if (made.length >= 8 && beside === '') secrets.push(made)
    return made
  })
  return { text, secrets }
}
