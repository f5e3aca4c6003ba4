import type { Claim } from '../../../../domain/claim.ts'
import type { SceneName } from './rows.ts'

/** A claim that is false, or that the rows it is about do not show. `class` says in which way. */
export type Lie = { class: string; claim: Claim; about: SceneName }

type Quoted = [seq: number, ...texts: string[]]

const claimed =
  (kind: Claim['kind']) =>
  (text: string, ...quoted: Quoted[]): Claim => ({
    kind,
    text,
    quotes: quoted.flatMap(([seq, ...texts]) => texts.map((each) => ({ seq, text: each }))),
  })

export const is = claimed('is')
export const was = claimed('was')
export const did = claimed('did')
export const absent = claimed('absent')

export const liesOf = (name: string, about: SceneName, ...claims: Claim[]): Lie[] =>
  claims.map((claim) => ({ class: name, claim, about }))
