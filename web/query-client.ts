import { QueryClient } from '@tanstack/react-query'
import { ApiProblem } from './api.ts'

/** The stream tells when something changed: nothing is asked again just because a window came to the front. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiProblem && error.status < 500),
    },
  },
})
