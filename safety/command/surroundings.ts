import { administrators } from './surroundings/administrators.ts'
import { clients, plain } from './surroundings/clients.ts'
import { clouds, clusters } from './surroundings/clusters.ts'
import { setThere } from './surroundings/there.ts'
import { git, tools } from './surroundings/tools.ts'

/** Rows by the program's base name, or by two words if a sub-command obeys something else. */
export const byProgram: ReadonlyMap<string, ProgramSurroundings> = new Map(
  [...plain, ...administrators, ...clients, ...clouds, ...clusters, ...git, ...tools].map(([name, row]) => {
    const there = setThere.get(name)
    return [name, there ? { ...row, there } : row] as const
  }),
)

/**
 * Settings that a program obeys besides its arguments (in its directory and its user's home), and
 * other parts of the machine that it reaches.
 */
export type ProgramSurroundings = {
  manual: string
  /**
   * The parts of the machine that the program can reach if it is called as its grammar allows.
   * `prints`: reads files and input, and prints. `service`: queries a service of this machine over
   * a socket with a path. `network`: reads the network or sends packets, and is wrong in another
   * network namespace. `mounts`: reads the table of mounts, and is wrong in another mount
   * namespace.
   */
  reach: 'prints' | 'service' | 'network' | 'mounts'
  /**
   * Settings that the program obeys, for the table in the documentation. If absent, it obeys only
   * files of the administrator.
   */
  obeys?: string
  /** Environment variables that switch these settings off. */
  switches?: Readonly<Record<string, string>>
  /** Conditions that the executor checks just before the run. */
  conditions?: readonly PlaceRule[]
  /**
   * Environment variables with which the program obeys nothing, used where files are not checked,
   * as in containers.
   */
  there?: Readonly<Record<string, string>>
  /**
   * Whether the program attaches to the process that its arguments name, by a signal that kills any
   * process but Java.
   */
  attaches?: true
  /** Options with which neither environment nor conditions help, so that people are asked. */
  asksWith?: readonly string[]
  /** Options that name a file which the program obeys. Only root may be able to write that file. */
  obeysFilesOf?: readonly string[]
  /** Options with which the program obeys nothing, if one of these is its first argument. */
  obeysNothingWith?: readonly string[]
  /** Sub-commands that obey no settings. */
  except?: readonly string[]
}

/**
 * A condition on the place where a program runs; with the directories of a call it becomes a
 * `CallCondition`.
 */
export type PlaceRule =
  /**
   * The files are absent, or only root may write them and their directories. `up`: in all
   * directories above too.
   */
  | { kind: 'root_only'; files: readonly string[]; up?: true }
  /** git's settings at the place, and in its submodules, only describe the repository. */
  | { kind: 'git_settings' }
  /** The user's kubeconfig starts no program, and sends no file except certificates. */
  | { kind: 'kubeconfig' }
  /** The docker client's settings lead to no plug-in and to no other host. */
  | { kind: 'docker_settings' }
  /** The process with this number runs Java. */
  | { kind: 'java'; process: string }
  /**
   * The file consists of sections with `key = value`, and has only these keys, which start no
   * program.
   */
  | { kind: 'plain_settings'; file: string; keys: readonly string[] }

/**
 * A condition for one call, as plain data for the executor. `directories`: where the program may
 * run, absolute or relative to where the call starts; if empty, it runs where the call starts.
 */
export type CallCondition = PlaceRule & { program: string; directories: readonly string[] }

export function surroundingsOf(program: string): ProgramSurroundings | null {
  return byProgram.get(program) ?? null
}

let narrowed: ReadonlySet<string> | null = null

/** Whether a sub-command of the program has its own row. */
export function hasNarrowerRows(program: string): boolean {
  narrowed ??= new Set([...byProgram.keys()].flatMap((name) => (name.includes(' ') ? [name.split(' ')[0]!] : [])))
  return narrowed.has(program)
}

/** Variables that are set for every read: no pager, and no language that loads code from a home. */
export const readEnvironment: Readonly<Record<string, string>> = {
  PAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  PYTHONNOUSERSITE: '1',
  PYTHONSAFEPATH: '1',
}
