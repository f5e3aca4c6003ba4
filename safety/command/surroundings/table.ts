import { grammars } from '../grammars/index.ts'
import { byProgram, type Rule, type Surroundings } from '../surroundings.ts'

const files = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')

const conditions: { [Kind in Rule['kind']]: (rule: Rule & { kind: Kind }) => string } = {
  root_only: (rule) => `absent or root's alone: ${files(rule.files)}${rule.up ? ', in the directory and above' : ''}`,
  git_settings: () => 'settings only describe the repository, in submodules too',
  kubeconfig: () => '`~/.kube/config` starts no program and sends no file',
  docker_settings: () => '`~/.docker/config.json` leads to no plug-in and no other host',
  plain_settings: ({ file }) => `\`${file}\` only names who connects`,
}

function helpOf({ switches, conditions: rules = [], obeysFilesOf, asksWith }: Surroundings): string {
  const said = rules.map((rule) => (conditions[rule.kind] as (rule: Rule) => string)(rule))
  if (switches) said.push(`set: ${switched(switches)}`)
  if (obeysFilesOf) said.push(`root's alone: the files of ${files(obeysFilesOf)}`)
  if (asksWith) said.push(`asks with ${files(asksWith)}`)
  return said.join('; ')
}

/** A setting of git is a pair of numbered variables: only its key is of interest. */
function switched(switches: Readonly<Record<string, string>>): string {
  const names = Object.entries(switches).flatMap(([name, value]) => {
    if (/^GIT_CONFIG_(?:COUNT|VALUE_\d+)$/.test(name)) return []
    return [name.startsWith('GIT_CONFIG_KEY_') ? value : value === '' ? `${name}=` : `${name}=${value}`]
  })
  return files(names)
}

const reaches: Record<Surroundings['reach'], string> = {
  prints: 'files and its input',
  service: 'a service of the machine',
  network: 'the network',
  mounts: 'the table of mounts',
}

/** The review of all grammars as a table for people; programs with the same row share a line. */
export function surroundingsTable(): string {
  const lines = new Map<string, string[]>()
  for (const [name, row] of byProgram) {
    if (!(name.split(' ')[0]! in grammars)) continue
    const cells = [row.obeys ?? '–', row.obeys === undefined ? '–' : helpOf(row), reaches[row.reach], row.manual]
    const rest = cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')
    lines.set(rest, [...(lines.get(rest) ?? []), name])
  }
  const rows = [...lines].map(([rest, names]) => ({
    line: `| ${files([...names].sort())} | ${rest} |`,
    obeys: !rest.startsWith('–'),
  }))
  const head = ['| program | obeys | condition or switch | reaches | manual |', '| --- | --- | --- | --- | --- |']
  const sorted = (obeys: boolean) =>
    rows
      .filter((row) => row.obeys === obeys)
      .map(({ line }) => line)
      .sort()
  return [...head, ...sorted(true), ...sorted(false)].join('\n')
}
