import { sha256 } from '../domain/digest.ts'
import type { Fields } from './body.ts'
import { cleanText, textOf } from './cap.ts'

const maxIdentityChars = 200

/** 16 hex digits that are equal for equal labels in any order. Reads the labels uncut: two long ones must not become one. */
export function fingerprintOf(labels: Fields, ...rest: (string | null)[]): string {
  const pairs = Object.keys(labels)
    .sort()
    .map((name) => [name, textOf(labels[name])])
  return sha256(JSON.stringify([pairs, ...rest])).slice(0, 16)
}

/** An identity as the sender gave it; one that is too long is hashed, never cut, so that no two alerts merge. */
export function identityOf(text: string): string {
  const clean = cleanText(text)
  return clean.length <= maxIdentityChars ? clean : `sha256:${sha256(clean)}`
}
