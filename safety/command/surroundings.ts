import { administrators } from './surroundings/administrators.ts'
import { clients, plain } from './surroundings/clients.ts'
import { clouds, clusters } from './surroundings/clusters.ts'
import { setThere } from './surroundings/there.ts'
import { git, tools } from './surroundings/tools.ts'

/** By the program's base name; by two words where a sub-command obeys something else. */
export const byProgram: ReadonlyMap<string, ProgramSurroundings> = new Map(
  [...plain, ...administrators, ...clients, ...clouds, ...clusters, ...git, ...tools].map(([name, row]) => {
    const there = setThere.get(name)
    return [name, there ? { ...row, there } : row] as const
  }),
)

/** What a program obeys besides its words: files of the place, of its user's home, and what the machine's other parts say. */
export type ProgramSurroundings = {
  manual: string
  /**
   * What it can use by itself, called as its grammar allows. `prints`: reads files and its input and prints, nothing else. `service`: asks a
   * service of this machine over a socket that has a path. `network`: looks at the network or sends packets, and its answer is
   * wrong without the machine's own. `mounts`: the same of the table of mounts.
   */
  reach: 'prints' | 'service' | 'network' | 'mounts'
  /** What it obeys, in words for the table. Absent: nothing but what only the administrator writes. */
  obeys?: string
  /** Environment that switches it off. */
  switches?: Readonly<Record<string, string>>
  /** What the executor makes sure of just before. */
  conditions?: readonly PlaceRule[]
  /** Environment with which it obeys nothing where nobody can look: in a container, on another host. */
  there?: Readonly<Record<string, string>>
  /** It attaches to the process whose number is among its words, by a signal that ends one which is no Java. */
  attaches?: true
  /** Options with which neither helps: somebody is asked. */
  asksWith?: readonly string[]
  /** Options that name a file which it obeys: only root may be able to write it. */
  obeysFilesOf?: readonly string[]
  /** Options with which it obeys nothing, where one of them is its first word. */
  obeysNothingWith?: readonly string[]
  /** Sub-commands that obey nothing. */
  except?: readonly string[]
}

/** What has to be true of the place; with the directories of a call it becomes a `Condition`. */
export type PlaceRule =
  /** Absent, or neither the file nor the way to it can be written by anybody but root. `up`: in all directories above, too. */
  | { kind: 'root_only'; files: readonly string[]; up?: true }
  /** The settings that git reads there, and in its submodules, only describe the repository. */
  | { kind: 'git_settings' }
  /** The kubeconfig of the user starts no program, and sends no file but certificates. */
  | { kind: 'kubeconfig' }
  /** The settings of the docker client lead to no plug-in and to no other host. */
  | { kind: 'docker_settings' }
  /** This process runs Java. */
  | { kind: 'java'; process: string }
  /** A file of `key = value` in sections holds these keys alone: who connects, and nothing that it starts. */
  | { kind: 'plain_settings'; file: string; keys: readonly string[] }

/** A rule for one call, as plain data for the executor. `directories`: where it may run, absolute or from where it starts; none: there. */
export type CallCondition = PlaceRule & { program: string; directories: readonly string[] }

export function surroundingsOf(program: string): ProgramSurroundings | null {
  return byProgram.get(program) ?? null
}

let narrowed: ReadonlySet<string> | null = null

/** Has a sub-command of it a row? */
export function hasNarrowerRows(program: string): boolean {
  narrowed ??= new Set([...byProgram.keys()].flatMap((name) => (name.includes(' ') ? [name.split(' ')[0]!] : [])))
  return narrowed.has(program)
}

/** Set for every read, whatever it runs: nothing is shown page by page, and no program of a language loads what a user has put into their home. */
export const readEnvironment: Readonly<Record<string, string>> = {
  PAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  PYTHONNOUSERSITE: '1',
  PYTHONSAFEPATH: '1',
}
