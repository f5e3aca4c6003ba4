import { StrictMode, useEffect, useState } from 'react'
import { LiveProvider } from './live.tsx'
import { Failed, Heading, Loading, Nothing } from './page-frame.tsx'
import { Link, navigate, usePlace } from './router.tsx'
import { findRoute } from './routes.tsx'
import { Shell } from './shell.tsx'
import { SignInPage } from './sign-in.tsx'
import './style.ts'
import { QueryClientProvider } from '@tanstack/react-query'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api.ts'
import { sayFieldFaults } from './field-faults.ts'
import { missing } from './permissions.ts'
import { type BrowserSession, useSession } from './session.ts'
import { chooseTheme, getTheme } from './theme.ts'

function App() {
  const session = useSession()
  const { pathname, search, hash } = usePlace()
  const signedIn = Boolean(session.data)
  const code = hash.startsWith('code=') ? hash.slice('code='.length) : null
  const [cameByCode] = useState(code !== null)
  useEffect(() => {
    if (signedIn && pathname === '/sign-in' && code === null) navigate(ownPath(search.get('to')), { replace: true })
  }, [signedIn, pathname, search, code])

  // Keeps the page after a used code was removed from the address: its message must stay while the
  // session is read.
  if (code !== null || (cameByCode && session.isPending)) return <SignInPage code={code} />
  if (session.isPending) return <Loading what="Nightshift" />
  // Keeps the page of a signed-in person while the server is away. The page's stream connects again
  // and reads again.
  if (session.error && session.data === undefined)
    return <Failed error={session.error} again={() => void session.refetch()} />
  if (!session.data) return <SignInPage code={null} />
  return (
    <LiveProvider>
      <Shell session={session.data}>
        <CurrentPage pathname={pathname} session={session.data} />
      </Shell>
    </LiveProvider>
  )
}

function CurrentPage({ pathname, session }: { pathname: string; session: BrowserSession }) {
  if (/^\/sign-in(\/[^/]*)?\/?$/.test(pathname)) return <Loading what="Nightshift" />
  const found = findRoute(pathname)
  if (!found) return <NoSuchPage />
  const { id, DetailPage, route } = found
  const { title, permission, advice, Page } = route
  if (id && DetailPage) return <DetailPage id={id} key={id} />
  const refused = permission && missing(session, permission)
  if (!refused) return <Page title={title} />
  return (
    <>
      <Heading title={title} />
      <p className="said">{[refused, advice].filter(Boolean).join(' ')}</p>
    </>
  )
}

function NoSuchPage() {
  return (
    <>
      <Heading title="No such page" />
      <Nothing title="There is nothing at this address.">
        <Link href="/home">Go to Home</Link>
      </Nothing>
    </>
  )
}

/** Returns where to go after signing in: only a path of this site. */
function ownPath(to: string | null): string {
  return to && /^\/(?![/\\])/.test(to) ? to : '/home'
}

chooseTheme(getTheme())
sayFieldFaults(document)
createRoot(document.getElementById('page') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
