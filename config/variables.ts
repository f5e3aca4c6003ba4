/**
 * Returns variables of this process that a child process needs, such as its search path. A child
 * process gets no other variables, because this process has secrets in its environment.
 */
export function readVariables<Name extends string>(...names: readonly Name[]): Partial<Record<Name, string>> {
  const set = names.filter((name) => process.env[name] !== undefined)
  return Object.fromEntries(set.map((name) => [name, process.env[name]])) as Partial<Record<Name, string>>
}
