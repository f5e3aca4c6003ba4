import type { Environment } from './environment.ts'
import type { Run } from './run-file.ts'

/**
 * Where the pages are, with a code that signs one browser in, once and within ten minutes. The code stands behind `#`, which
 * browsers send to nobody: it is in no log and no referrer.
 */
export async function signInLink({ url, tokens }: Run, env: Environment): Promise<string> {
  const shown = env.PUBLIC_URL || url
  const answer = tokens.admin
    ? await fetch(`${url}/auth/codes`, { method: 'POST', headers: { authorization: `Bearer ${tokens.admin}` } }).catch(
        () => null,
      )
    : null
  const { code } = answer?.ok ? ((await answer.json()) as { code?: string }) : {}
  return code ? `${shown}/sign-in#code=${code}` : shown
}
