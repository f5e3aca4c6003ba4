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

/**
 * Things a program obeys besides its words: files of the place and of its user's home, and words of
 * the machine's other parts.
 */
export type ProgramSurroundings = {
  manual: string
  /**
   * Things it can use, called as its grammar allows. `prints`: reads files and input and prints.
   * `service`: asks a service of this machine over a socket with a path. `network`: looks at the
   * network or sends packets, and is wrong without the machine's own. `mounts`: the same for the
   * table of mounts.
   */
  reach: 'prints' | 'service' | 'network' | 'mounts'
  /** The things it obeys, for the table. Absent: nothing but what only the administrator writes. */
  obeys?: string
  /** Environment that switches it off. */
  switches?: Readonly<Record<string, string>>
  /** What the executor makes sure of just before. */
  conditions?: readonly PlaceRule[]
  /** Environment with which it obeys nothing where nobody can look: in containers, elsewhere. */
  there?: Readonly<Record<string, string>>
  /** It attaches to the process in its words, by a signal that ends one which is no Java. */
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
  /** Absent, or only root can write the file and its way. `up`: in all directories above, too. */
  | { kind: 'root_only'; files: readonly string[]; up?: true }
  /** The settings that git reads there, and in its submodules, only describe the repository. */
  | { kind: 'git_settings' }
  /** The kubeconfig of the user starts no program, and sends no file but certificates. */
  | { kind: 'kubeconfig' }
  /** The settings of the docker client lead to no plug-in and to no other host. */
  | { kind: 'docker_settings' }
  /** This process runs Java. */
  | { kind: 'java'; process: string }
  /** A `key = value` file in sections with these keys alone: who connects, nothing it starts. */
  | { kind: 'plain_settings'; file: string; keys: readonly string[] }

/**
 * A rule for one call, as plain data for the executor. `directories`: where it may run, absolute or
 * from its start; none: there.
 */
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

/** Set for every read: no pager, and no language loads what a user put into their home. */
export const readEnvironment: Readonly<Record<string, string>> = {
  PAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  PYTHONNOUSERSITE: '1',
  PYTHONSAFEPATH: '1',
}
