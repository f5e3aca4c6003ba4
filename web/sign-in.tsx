import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import type { Permission, PersonRole, Role } from '../domain/operator.ts'
import { ApiProblem, ask, queryClient } from './api.ts'
import { forgetDrafts } from './fields.tsx'
import { Brand, Failed } from './page-frame.tsx'
import { go } from './router.tsx'

export type Session = { name: string; role: Role; permissions: Permission[] }

const key = ['session']

/** Who is signed in: null for nobody, undefined while that is not known yet. */
export function useSession() {
  return useQuery({
    queryKey: key,
    staleTime: 60_000,
    refetchInterval: 300_000,
    queryFn: async ({ signal }): Promise<Session | null> => {
      try {
        return await ask<Session>('/auth/session', { signal })
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 401) return null
        throw error
      }
    },
  })
}

export async function signIn(proof: { token: string } | { code: string }): Promise<void> {
  await ask('/auth/session', { method: 'POST', body: proof })
  const session = await ask<Session>('/auth/session').catch(() => null)
  if (!session) {
    throw new ApiProblem(
      401,
      'NO_COOKIE',
      'The token is right, but this browser did not keep the cookie. Open the page over https, or allow cookies for it.',
    )
  }
  queryClient.setQueryData(key, session)
}

export async function signOut(): Promise<void> {
  await ask('/auth/session', { method: 'DELETE' })
  forgetDrafts()
  queryClient.clear()
  queryClient.setQueryData(key, null)
}

/** Why a person may not do something; null when they may. The server refuses it all the same. */
export function missing(session: Session | null | undefined, permission: Permission): string | null {
  if (!session) return 'Sign in first.'
  if (session.permissions.includes(permission)) return null
  return `Your role (${session.role}) may not do this: it needs the permission ${permission}.`
}

/**
 * Every role, and whether people have it. The domain's own list comes with zod, which a browser need not load; one that is added
 * does not compile until it stands here.
 */
const roles: Record<Role, boolean> = {
  viewer: true,
  operator: true,
  approver: true,
  admin: true,
  agent: false,
  ingest: false,
}

export const allRoles = Object.keys(roles) as Role[]
export const rolesOfPeople = allRoles.filter(isOfPeople)

export function isOfPeople(role: Role): role is PersonRole {
  return roles[role]
}

/** By a token, or by the code of the address that `npm start` printed. */
export function SignInPage({ code }: { code: string | null }) {
  const spent = useRef(false)
  const { mutate, error, isIdle, isPending } = useMutation({
    mutationFn: signIn,
    onSettled: (_answer, _error, proof) => {
      // The code leaves the address bar and the history, used or not.
      if ('code' in proof) go(location.pathname === '/' ? '/home' : location.pathname, { replace: true })
    },
  })
  useEffect(() => {
    document.title = 'Sign in · Nightshift'
    if (code === null || spent.current) return
    spent.current = true
    mutate({ code })
  }, [code, mutate])
  return (
    <main className="alone">
      <p>
        <Brand />
      </p>
      <h1>Sign in</h1>
      {error !== null && <Failed error={error} />}
      {code !== null && (isPending || isIdle) ? (
        <p role="status">Signing in…</p>
      ) : (
        <TokenForm isBusy={isPending} onToken={(token) => mutate({ token })} />
      )}
    </main>
  )
}

function TokenForm({ isBusy, onToken }: { isBusy: boolean; onToken(token: string): void }) {
  const [token, setToken] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onToken(token.trim())
  }
  return (
    <form onSubmit={submit}>
      <label htmlFor="token">API token</label>
      <input
        id="token"
        type="password"
        autoComplete="current-password"
        required
        value={token}
        onChange={(event) => setToken(event.target.value)}
      />
      <button type="submit" className="main" disabled={isBusy}>
        {isBusy ? 'Signing in…' : 'Sign in'}
      </button>
      <ProviderLink />
      <p className="soft small">
        <code>npm start</code> prints an address that signs you in by itself. Tokens of that start are in{' '}
        <code>.nightshift/run.json</code>; those of agents and alert senders open no page.
      </p>
    </form>
  )
}

/** The other way in, where an OpenID Connect provider is set. */
function ProviderLink() {
  const { data } = useQuery({
    queryKey: ['ways to sign in'],
    queryFn: ({ signal }) => ask<{ oidc: boolean }>('/auth/methods', { signal }),
  })
  if (!data?.oidc) return null
  const here = location.pathname === '/sign-in' ? '/home' : location.pathname + location.search
  return (
    <p>
      or <a href={`/auth/oidc/start?returnTo=${encodeURIComponent(here)}`}>sign in with your organisation’s account</a>
    </p>
  )
}
