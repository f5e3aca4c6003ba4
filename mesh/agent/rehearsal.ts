import { lstat, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { globExpression } from '../../safety/command/patterns.ts'
import { redact } from '../../safety/redact.ts'
import type { CapabilityContext } from './capability.ts'
import { isSecret } from './manifest.ts'

/** What the person who decides is shown of one check: what ran on the copy, and what it said. */
export type CheckRun = { argv: string[]; exit_code: number | null; output: string }

const longestOutput = 8_192

/** In place of what a file with secrets in it would show. */
export const withheld = '[not shown: such files hold secrets]\n'

export const rehearsalsIn = (state: string): string => join(state, 'rehearsals')

/**
 * A throw-away directory below the agent's state for as long as an act takes; whatever happens, it
 * is gone afterwards.
 */
export async function inThrowAway<T>(state: string, act: (directory: string) => Promise<T>): Promise<T> {
  const parent = rehearsalsIn(state)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  const directory = await mkdtemp(join(parent, 'r-'))
  try {
    return await act(directory)
  } finally {
    await remove(directory)
  }
}

/**
 * Removes what rehearsals of an agent that was killed left behind, and answers how many. To be
 * called at the start and hourly.
 */
export async function sweepRehearsals(
  state: string,
  olderThanSeconds: number,
  now: number = Date.now(),
): Promise<number> {
  const parent = rehearsalsIn(state)
  const names = await readdir(parent).catch(() => [])
  let swept = 0
  for (const name of names) {
    const directory = join(parent, name)
    const found = await lstat(directory).catch(() => null)
    if (!found || now - found.mtimeMs < olderThanSeconds * 1_000) continue
    await remove(directory)
    swept++
  }
  return swept
}

const remove = (directory: string) => rm(directory, { recursive: true, force: true, maxRetries: 3 })

/** A file under its real path, and its copy that the checks are tried on. */
export type Copy = { path: string; copy: string }

/**
 * Runs the manifest's checks whose `path` matches one of the files, on their copies, confined as
 * reads are. Copies are the agent's alone: where reads run as another user, a check cannot open
 * them and its exit code says so. What a check prints may come from any file that the agent can
 * read, if the content makes it (`include /etc/shadow`): known secrets are taken out, the rest is a
 * reason to run the agent without rights.
 */
export async function runChecks(
  copies: readonly Copy[],
  directory: string,
  { manifest, run }: Pick<CapabilityContext, 'manifest' | 'run'>,
): Promise<CheckRun[]> {
  const runs: CheckRun[] = []
  for (const { path, copy } of copies) {
    for (const check of manifest.checks) {
      if (!globExpression([check.path]).test(path)) continue
      const argv = check.argv.map((word) => word.replaceAll('{path}', copy))
      const { exitCode, stdout, stderr } = await run(argv, { cwd: directory, confine: 'read', sees: ['rehearsals'] })
      const said = redact(stdout + stderr)
        .slice(0, longestOutput)
        .toWellFormed()
      const output = isSecret(path) ? withheld : said
      runs.push({ argv, exit_code: exitCode, output })
    }
  }
  return runs
}
