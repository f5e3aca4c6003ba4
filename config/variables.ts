/**
 * Variables of this process that a started program gets, and where it looks for programs. A child
 * gets no others, since this process knows secrets.
 */
export function readVariables<Name extends string>(...names: readonly Name[]): Partial<Record<Name, string>> {
  const set = names.filter((name) => process.env[name] !== undefined)
  return Object.fromEntries(set.map((name) => [name, process.env[name]])) as Partial<Record<Name, string>>
}
