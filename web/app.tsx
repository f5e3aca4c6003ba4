import { useEffect, useState } from 'react'
import { ApprovalPage } from './approvals/approval-page.tsx'
import { ApprovalsPage } from './approvals/inbox.tsx'
import { ConfigPage } from './config/page.tsx'
import { Heading } from './heading.tsx'
import { IncidentPage } from './incident/page.tsx'
import { IncidentsPage } from './incidents/page.tsx'
import { LiveProvider } from './live.tsx'
import { AlertsPage } from './pages/alerts.tsx'
import { AuditPage } from './pages/audit.tsx'
import { DevicesPage } from './pages/devices.tsx'
import { GapsPage } from './pages/gaps.tsx'
import { HealthPage } from './pages/health.tsx'
import { PeoplePage } from './pages/people.tsx'
import { TokensPage } from './pages/tokens.tsx'
import { UsagePage } from './pages/usage.tsx'
import { go, Link, usePlace } from './router.tsx'
import { useSession } from './session.ts'
import { Shell } from './shell.tsx'
import { SignInPage } from './sign-in.tsx'
import { Failed, Loading, Nothing } from './states.tsx'

export function App() {
  const session = useSession()
  const { pathname, search, hash } = usePlace()
  const signedIn = Boolean(session.data)
  const code = hash.startsWith('code=') ? hash.slice('code='.length) : null
  const [cameByCode] = useState(code !== null)
  useEffect(() => {
    if (signedIn && pathname === '/sign-in' && code === null) go(ownPath(search.get('to')), { replace: true })
  }, [signedIn, pathname, search, code])

  // Once used, the code leaves the address: what the page has to say about it must not go with it while the session is asked.
  if (code !== null || (cameByCode && session.isPending)) return <SignInPage code={code} />
  if (session.isPending) return <Loading what="Nightshift" />
  // Once signed in, the page stays while the server is away: its stream reconnects and asks again.
  if (session.error && session.data === undefined)
    return <Failed error={session.error} again={() => void session.refetch()} />
  if (!session.data) return <SignInPage code={null} />
  return (
    <LiveProvider>
      <Shell session={session.data}>
        <Page pathname={pathname} />
      </Shell>
    </LiveProvider>
  )
}

function Page({ pathname }: { pathname: string }) {
  const [, place = '', id, more] = pathname.split('/')
  if (more) return <NoSuchPage />
  if (place === '' || (place === 'incidents' && !id)) return <IncidentsPage />
  if (place === 'incidents' && id) return <IncidentPage id={id} key={id} />
  if (place === 'approvals' && id) return <ApprovalPage id={id} key={id} />
  if (place === 'approvals') return <ApprovalsPage />
  if (place === 'alerts') return <AlertsPage />
  if (place === 'config') return <ConfigPage />
  if (place === 'health') return <HealthPage />
  if (place === 'usage') return <UsagePage />
  if (place === 'gaps') return <GapsPage />
  if (place === 'devices') return <DevicesPage />
  if (place === 'audit') return <AuditPage />
  if (place === 'people') return <PeoplePage />
  if (place === 'tokens') return <TokensPage />
  if (place === 'sign-in') return <Loading what="Nightshift" />
  return <NoSuchPage />
}

function NoSuchPage() {
  return (
    <>
      <Heading title="No such page" />
      <Nothing title="There is nothing at this address.">
        <Link href="/incidents">Go to the incidents</Link>
      </Nothing>
    </>
  )
}

/** Where to go after signing in: a path of this page and nothing else. */
function ownPath(to: string | null): string {
  return to && /^\/(?![/\\])/.test(to) ? to : '/incidents'
}
