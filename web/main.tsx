import './style/theme.css'
import './style/base.css'
import './style/shell.css'
import './style/table.css'
import './style/timeline.css'
import './style/card.css'
import './style/device.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { queryClient } from './query-client.ts'
import { applyTheme } from './switches.tsx'

applyTheme()
createRoot(document.getElementById('page') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
