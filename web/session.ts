import { useQuery } from '@tanstack/react-query'
import type { Permission, Role } from '../domain/permissions.ts'
import { ApiRefusal, ask, queryClient } from './api.ts'
import { forgetDrafts } from './fields.tsx'
import { learnPrefix } from './own-command.ts'

export type BrowserSession = { name: string; role: Role; permissions: Permission[]; commandPrefix: string }

const key = ['session']

/** Returns the signed-in person. Null if nobody is signed in, undefined while this is unknown. */
export function useSession() {
  return useQuery({
    queryKey: key,
    staleTime: 60_000,
    refetchInterval: 300_000,
    queryFn: async ({ signal }): Promise<BrowserSession | null> => {
      try {
        const session = await ask<BrowserSession>('/auth/session', { signal })
        learnPrefix(session.commandPrefix)
        return session
      } catch (error) {
        if (error instanceof ApiRefusal && error.status === 401) return null
        throw error
      }
    },
  })
}

export async function signIn(proof: { token: string } | { code: string }): Promise<void> {
  await ask('/auth/session', { method: 'POST', body: proof })
  const session = await ask<BrowserSession>('/auth/session').catch(() => null)
  if (!session) {
    throw new ApiRefusal(
      401,
      'NO_COOKIE',
      'The token is valid, but this browser did not keep the cookie. Open the page over https, or allow cookies for it.',
    )
  }
  learnPrefix(session.commandPrefix)
  queryClient.setQueryData(key, session)
}

export async function signOut(): Promise<void> {
  await ask('/auth/session', { method: 'DELETE' })
  forgetDrafts()
  queryClient.clear()
  queryClient.setQueryData(key, null)
}
