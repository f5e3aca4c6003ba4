/**
 * What a text makes known before it uses it: variables, positional parameters, functions and aliases. For the hard list alone: a
 * command that hides behind `a=rm; $a -rf /` is the command, and a value that is known wrongly can only make a verdict stricter.
 */
export type Constants = {
  /** The values that a variable may have had, the newest last; each as its fields, of which a scalar has one. */
  variables: ReadonlyMap<string, string[][]>
  /** Bodies of functions and texts of aliases, as they are written. */
  functions: ReadonlyMap<string, string>
  aliases: ReadonlyMap<string, string>
  /** Arguments of the function or script that is looked into. */
  positional: readonly string[]
  /** What `$0` is. */
  zero: string
}

/** More values of one variable than these are not tried. */
const mostValues = 8
/** A value that is longer disguises nothing. */
const longestValue = 4096

/** What every shell knows. The values matter where a text cuts a character out of one: `${PATH:0:1}`. */
const given: Readonly<Record<string, string>> = {
  IFS: ' \t\n',
  HOME: '/root',
  PWD: '/',
  OLDPWD: '/',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  SHELL: '/bin/bash',
  BASH: '/bin/bash',
  OSTYPE: 'linux-gnu',
  HOSTTYPE: 'x86_64',
}

const none: ReadonlyMap<string, string & string[][]> = new Map()

export const noConstants = (): Constants => ({
  variables: none,
  functions: none,
  aliases: none,
  positional: [],
  zero: 'bash',
})

export function remember(constants: Constants, name: string, fields: string[]): void {
  if (fields.some((field) => field.length > longestValue)) return
  const before = constants.variables.get(name) ?? []
  set(constants, 'variables', name, [...before.slice(1 - mostValues), fields])
}

export function defineWord(constants: Constants, kind: 'functions' | 'aliases', name: string, text: string): void {
  set(constants, kind, name, text)
}

/** Most texts make nothing known: a map is made when there is something to put in. */
function set<K extends 'variables' | 'functions' | 'aliases'>(
  constants: Constants,
  kind: K,
  name: string,
  value: string | string[][],
): void {
  if (constants[kind] === none) constants[kind] = new Map() as Constants[K]
  ;(constants[kind] as Map<string, typeof value>).set(name, value)
}

/** How many ways there are to read a text with these: the largest number of values that one variable has. */
export function waysToRead({ variables }: Constants): number {
  let most = 1
  for (const values of variables.values()) most = Math.max(most, values.length)
  return most
}

/** The fields of a parameter, where they are known; `back` counts from the newest value. */
export function knownFields(constants: Constants, name: string, back: number): readonly string[] | null {
  if (name === '@' || name === '*') return constants.positional
  if (name === '#') return [String(constants.positional.length)]
  if (/^\d+$/.test(name)) {
    const value = name === '0' ? constants.zero : constants.positional[Number(name) - 1]
    return value === undefined ? [] : [value]
  }
  const values = constants.variables.get(name)
  if (values) return values[Math.max(0, values.length - 1 - back)]!
  return Object.hasOwn(given, name) ? [given[name]!] : null
}
