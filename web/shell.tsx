import { type ReactNode, useState } from 'react'
import { invalidateApprovals } from './approvals/query.ts'
import { KeyHelp } from './keys.tsx'
import { useLive } from './live.tsx'
import { BottomBar, FamilyTabs, Navigation } from './navigation.tsx'
import { AwayBanner, WhereContext } from './page-frame.tsx'
import { ModelWarning } from './pages/health.tsx'
import { Palette } from './palette.tsx'
import type { BrowserSession } from './session.ts'
import { StatusPill } from './status-pill.tsx'
import { useZone } from './time.ts'

/**
 * Shows the frame of every page: navigation, waiting approvals, the state of the parts, the person.
 */
export function Shell({ session, children }: { session: BrowserSession; children: ReactNode }) {
  const times = useZone()
  const [where, setWhere] = useState<HTMLElement | null>(null)
  useLive((event) => {
    if (/^(approval_|grant_used|resolved|escalated|cancelled)/.test(event.kind)) invalidateApprovals()
  })
  return (
    <WhereContext value={where}>
      <div className="shell">
        <a className="skip" href="#content">
          Skip to the content
        </a>
        <Navigation session={session} />
        <div className="page">
          <header className="top">
            <div className="where" ref={setWhere} />
            <Palette session={session} />
            <StatusPill />
          </header>
          {/* Draws everything again if the time zone changes, because it changes the text of
              every time. */}
          <main id="content" key={times}>
            <AwayBanner />
            <ModelWarning />
            <FamilyTabs />
            {children}
          </main>
        </div>
        <BottomBar session={session} />
        <KeyHelp />
      </div>
    </WhereContext>
  )
}
