import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './environment.ts'

/** What a running Nightshift tells scripts and the command line about itself; kept when it stops, so that tokens survive. */
export interface LocalRun {
  url: string
  temporalAddress: string
  temporalUiUrl: string | null
  databaseUrl: string
  labUrl: string | null
  labControlToken: string | null
  /** What is asked; absent in files of version 0.1.0. */
  model?: { baseUrl: string; name: string; isRuleTable: boolean }
  tokens: Partial<Record<'admin' | 'approver' | 'ingest' | 'agent', string>>
  /** The process to ask; null when it has stopped. */
  pid: number | null
}

/** Where a checkout keeps its state. */
export function stateDirOf(rootDir: string): string {
  return join(rootDir, '.nightshift')
}

/** The run file of the last start, or undefined when there was none. */
export function readRunFile(stateDir: string): LocalRun | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'run.json'), 'utf8')) as LocalRun
  } catch {
    return undefined
  }
}

/** Replaces the run file in one step; only the owner of the checkout can read it. */
export function writeRunFile(stateDir: string, run: LocalRun): void {
  const file = join(stateDir, 'run.json')
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/**
 * Where the pages are, with a code that signs one browser in, once and within ten minutes. The code stands behind `#`, which
 * browsers send to nobody: it is in no log and no referrer.
 */
export async function signInLink({ url, tokens }: LocalRun, env: Environment): Promise<string> {
  const shown = env.PUBLIC_URL || url
  const answer = tokens.admin
    ? await fetch(`${url}/auth/codes`, { method: 'POST', headers: { authorization: `Bearer ${tokens.admin}` } }).catch(
        () => null,
      )
    : null
  const { code } = answer?.ok ? ((await answer.json()) as { code?: string }) : {}
  return code ? `${shown}/sign-in#code=${code}` : shown
}
