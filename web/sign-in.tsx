import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useAsk } from './api.ts'
import { TextField } from './fields.tsx'
import { Brand, Failed, PageForm } from './page-frame.tsx'
import { navigate } from './router.tsx'
import { signIn } from './session.ts'

/** Signs in with a token, or with the code in the address that `npm start` printed. */
export function SignInPage({ code }: { code: string | null }) {
  const spent = useRef(false)
  const { mutate, error, isIdle, isPending } = useMutation({
    mutationFn: signIn,
    onSettled: (_answer, _error, proof) => {
      // Removes the code from the address bar and the history, whether it was accepted or not.
      if ('code' in proof) navigate(location.pathname === '/' ? '/home' : location.pathname, { replace: true })
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
  return (
    <PageForm onSubmit={() => onToken(token.trim())}>
      <TextField
        id="token"
        type="password"
        label="API token"
        autoComplete="current-password"
        required
        value={token}
        onChange={setToken}
      />
      <button type="submit" className="main" disabled={isBusy}>
        {isBusy ? 'Signing in…' : 'Sign in'}
      </button>
      <ProviderLink />
      <p className="soft small">
        An admin creates a token for you. In a checkout <code>npm start</code> prints an address that signs you in, and
        keeps its tokens in <code>.nightshift/run.json</code>, or for a site in <code>.nightshift-site/run.json</code>.
        Tokens of agents and alert senders cannot sign in.
      </p>
    </PageForm>
  )
}

/** Shows the link to sign in with a provider, if an OpenID Connect provider is set. */
function ProviderLink() {
  const { data } = useAsk<{ oidc: boolean }>(['ways to sign in'], '/auth/methods')
  if (!data?.oidc) return null
  const here = location.pathname === '/sign-in' ? '/home' : location.pathname + location.search
  return (
    <p>
      or <a href={`/auth/oidc/start?returnTo=${encodeURIComponent(here)}`}>sign in with your organisation’s account</a>
    </p>
  )
}
