/**
 * Where the pages are, with a code that signs one browser in, once and within ten minutes. The code stands behind `#`, which
 * browsers send to nobody: it is in no log and no referrer.
 */
export async function pageAddress(api: string, shown: string, token: string | undefined): Promise<string> {
  const answer = token
    ? await fetch(`${api}/auth/codes`, { method: 'POST', headers: { authorization: `Bearer ${token}` } }).catch(
        () => null,
      )
    : null
  const { code } = answer?.ok ? ((await answer.json()) as { code?: string }) : {}
  return code ? `${shown}/sign-in#code=${code}  (signs in once, within 10 minutes)` : shown
}
