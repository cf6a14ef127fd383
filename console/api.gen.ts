// Written by console/generate-api.ts from openapi.json (`npm run generate`).

export type ActivityItem = { "date": string; "model": string; "model_permaslug": string; "endpoint_id": string; "provider_name": string; "usage": number; "byok_usage_inference": number; "requests": number; "prompt_tokens": number; "completion_tokens": number; "reasoning_tokens": number; "workspace_id"?: string; };

export type AnalyticsMeta = { "dimensions": ({ "name": string; "display_label": string; })[]; "granularities": ({ "name": "minute" | "hour" | "day" | "week" | "month"; "display_label": string; })[]; "metrics": ({ "name": string; "display_label": string; "display_format": "number" | "currency" | "percent" | "latency" | "throughput"; "is_rate": boolean; })[]; "operators": ({ "name": "eq" | "neq" | "in" | "not_in" | "gt" | "gte" | "lt" | "lte"; "value_type": "scalar" | "array"; })[]; };

export type AnalyticsQuery = { "metrics": ("request_count" | "error_count" | "error_rate" | "byok_request_count" | "total_usage" | "credits_usage" | "byok_usage" | "usage_cache" | "usage_fees" | "usage_web" | "tokens_total" | "tokens_prompt" | "tokens_completion" | "reasoning_tokens" | "cached_tokens" | "cache_write_tokens" | "audio_tokens" | "image_tokens" | "cache_hit_rate" | "guardrail_invoked_count" | "guardrail_invoked_rate" | "avg_latency" | "p50_latency" | "p90_latency" | "p95_latency" | "p99_latency" | "avg_ttft" | "p50_ttft" | "p90_ttft" | "p95_ttft" | "p99_ttft" | "avg_throughput" | "p50_throughput" | "p90_throughput" | "p95_throughput" | "p99_throughput")[]; "dimensions"?: ("model" | "provider" | "api_key_id" | "user" | "workspace" | "app" | "tag" | "external_user" | "status" | "finish_reason" | "guardrail" | "operation")[]; "granularity"?: "minute" | "hour" | "day" | "week" | "month"; "time_range"?: { "start": string; "end": string; }; "filters"?: ({ "field": string; "operator": "eq" | "neq" | "in" | "not_in" | "gt" | "gte" | "lt" | "lte"; "value": string | number | (string | number)[]; "include_unset"?: boolean; })[]; "order_by"?: { "field": string; "direction": "asc" | "desc"; }; "limit"?: number; "group_limit"?: number; };

export type AnalyticsResult = { "data": (Record<string, unknown>)[]; "metadata": { "query_time_ms": number; "row_count": number; "truncated": boolean; }; "warnings"?: (string)[]; };

export type AuditEvent = { "id": string; "created_at": string; "actor": "key" | "environment" | "command" | "page" | "callback"; "actor_key_hash": string | null; "actor_user_id": string | null; "action": "create" | "update" | "delete" | "assign" | "unassign" | "rotate" | "exchange" | "sign-in" | "sign-out"; "resource_type": "api_key" | "authorization_code" | "byok_credential" | "credits" | "generation" | "guardrail" | "guardrail_assignment" | "ledger_node" | "session" | "user" | "workspace" | "workspace_budget" | "workspace_member"; "resource_id": string; "before": Record<string, never> | null; "after": Record<string, never> | null; "request_id": string | null; };

export type Credits = { "total_credits": number; "total_usage": number; };

export type Key = { "hash": string; "id": number; "name": string; "label": string; "disabled": boolean; "created_at": string; "updated_at": string | null; "expires_at": string | null; "creator_user_id": string | null; "workspace_id": string; "limit": number | null; "limit_remaining": number | null; "limit_reset": "daily" | "weekly" | "monthly" | null; "include_byok_in_limit": boolean; "usage": number; "usage_daily": number; "usage_weekly": number; "usage_monthly": number; "byok_usage": number; "byok_usage_daily": number; "byok_usage_weekly": number; "byok_usage_monthly": number; "budget_mode": "strict" | "soft" | null; "parent_hash": string | null; "external_user": string | null; "last_used_at": string | null; };

export type ModelEndpoints = { "id": string; "name": string; "created": number; "description": string; "architecture": { "input_modalities": ("text" | "image" | "file" | "audio" | "video")[]; "output_modalities": ("text" | "image" | "embeddings" | "audio" | "video" | "rerank" | "speech" | "transcription")[]; "modality": string | null; "instruct_type": string | null; "tokenizer": "Router" | "Media" | "Other" | "GPT" | "Claude" | "Gemini" | "Gemma" | "Grok" | "Cohere" | "Nova" | "Qwen" | "Yi" | "DeepSeek" | "Mistral" | "Llama2" | "Llama3" | "Llama4" | "PaLM" | "RWKV" | "Qwen3"; }; "endpoints": (PublicEndpoint)[]; };

export type OrganizationMember = { "id": string; "email": string; "first_name": string | null; "last_name": string | null; "role": "org:admin" | "org:member"; };

export type Pricing = { "prompt": string; "completion": string; "request"?: string; "image"?: string; "image_token"?: string; "image_output"?: string; "audio"?: string; "audio_output"?: string; "input_audio_cache"?: string; "input_cache_read"?: string; "input_cache_write"?: string; "input_cache_write_1h"?: string; "internal_reasoning"?: string; "web_search"?: string; "audio_second"?: string; "discount"?: number; };

export type Provider = { "name": string; "slug": string; "privacy_policy_url": string | null; "terms_of_service_url": string | null; "status_page_url": string | null; "headquarters": string | null; "datacenters": (string)[] | null; };

export type PublicEndpoint = { "name": string; "model_id": string; "model_name": string; "context_length": number; "pricing": Pricing; "provider_name": string; "tag": string; "quantization": "int4" | "int8" | "fp4" | "fp6" | "fp8" | "fp16" | "bf16" | "fp32" | "unknown"; "max_completion_tokens": number | null; "max_prompt_tokens": number | null; "supported_parameters": ("temperature" | "top_p" | "top_k" | "min_p" | "top_a" | "frequency_penalty" | "presence_penalty" | "repetition_penalty" | "max_tokens" | "max_completion_tokens" | "logit_bias" | "logprobs" | "top_logprobs" | "seed" | "response_format" | "structured_outputs" | "stop" | "tools" | "tool_choice" | "parallel_tool_calls" | "include_reasoning" | "reasoning" | "reasoning_effort" | "web_search_options" | "verbosity")[]; "supports_implicit_caching": boolean; "supports_tool_choice": { "auto": boolean; "none": boolean; "required": boolean; "function": boolean; }; "native_tools": Record<string, unknown>; "service_tier": string | null; "supports_diarization": boolean; "supports_voice_cloning": boolean; "status"?: "0" | "-1" | "-2" | "-3" | "-5" | "-10" | number; "latency_last_30m": { "p50": number; "p75": number; "p90": number; "p99": number; } | null; "throughput_last_30m": { "p50": number; "p75": number; "p90": number; "p99": number; } | null; "samples_last_30m": number | null; "uptime_last_5m": number | null; "uptime_last_30m": number | null; "uptime_last_1d": number | null; };

export type RetrievedModel = { "id": string; "canonical_slug": string; "name": string; "description"?: string; "created": number; "context_length": number | null; "expiration_date": string | null; "knowledge_cutoff": string | null; "model_hub_id": string | null; "architecture": { "input_modalities": ("text" | "image" | "file" | "audio" | "video")[]; "output_modalities": ("text" | "image" | "embeddings" | "audio" | "video" | "rerank" | "speech" | "transcription")[]; "modality": string | null; "instruct_type": string | null; "tokenizer": "Router" | "Media" | "Other" | "GPT" | "Claude" | "Gemini" | "Gemma" | "Grok" | "Cohere" | "Nova" | "Qwen" | "Yi" | "DeepSeek" | "Mistral" | "Llama2" | "Llama3" | "Llama4" | "PaLM" | "RWKV" | "Qwen3"; }; "pricing": Pricing; "top_provider": { "is_moderated": boolean; "context_length": number | null; "max_completion_tokens": number | null; }; "per_request_limits": { "prompt_tokens": number; "completion_tokens": number; } | null; "supported_parameters": ("temperature" | "top_p" | "top_k" | "min_p" | "top_a" | "frequency_penalty" | "presence_penalty" | "repetition_penalty" | "max_tokens" | "max_completion_tokens" | "logit_bias" | "logprobs" | "top_logprobs" | "seed" | "response_format" | "structured_outputs" | "stop" | "tools" | "tool_choice" | "parallel_tool_calls" | "include_reasoning" | "reasoning" | "reasoning_effort" | "web_search_options" | "verbosity")[]; "default_parameters": { "temperature": number | null; "top_p": number | null; "top_k": number | null; "frequency_penalty": number | null; "presence_penalty": number | null; "repetition_penalty": number | null; }; "supported_voices": (string)[] | null; "links": { "details": string; }; "object": "model"; "owned_by": string; "type": "model"; "display_name": string; "created_at": string; "max_input_tokens": number | null; "max_tokens": number | null; "lifecycle": "active" | "deprecated"; "retires_at": string | null; };

export type Session = { "organization_id": string; "user_id": string; "user_name": string; "user_email": string | null; "role": "admin" | "member"; "expires_at": string; "form_token": string; };

export type Workspace = { "id": string; "name": string; "slug": string; "description": string | null; "created_at": string; "created_by": string | null; "updated_at": string | null; "default_image_model": string | null; "default_text_model": string | null; "default_provider_sort": "price" | "throughput" | "latency" | "exacto" | null; "io_logging_api_key_ids": (number)[] | null; "io_logging_sampling_rate": number; "is_data_discount_logging_enabled": boolean; "is_observability_broadcast_enabled": boolean; "is_observability_io_logging_enabled": boolean; "default_guardrail_id": string; "include_byok_in_budgets": boolean; };

export type WorkspaceBudget = { "id": string; "workspace_id": string; "limit_usd": number; "reset_interval": "daily" | "weekly" | "monthly" | null; "created_at": string; "updated_at": string; };

export type WorkspaceMember = { "id": string; "workspace_id": string; "user_id": string; "role": "admin" | "member"; "created_at": string; };

export interface Operations {
  listModels: { path: Record<string, never>; query: { "category"?: "programming" | "roleplay" | "marketing" | "marketing/seo" | "technology" | "science" | "translation" | "legal" | "finance" | "health" | "trivia" | "academia"; "supported_parameters"?: string; "output_modalities"?: string; "input_modalities"?: string; "q"?: string; "context"?: number; "min_price"?: number; "max_price"?: number; "min_output_price"?: number; "max_output_price"?: number; "arch"?: string; "model_authors"?: string; "providers"?: string; "distillable"?: "true" | "false"; "zdr"?: "true"; "min_age_days"?: number; "max_age_days"?: number; "sort"?: "newest" | "pricing-low-to-high" | "pricing-high-to-low" | "context-high-to-low" | "throughput-high-to-low" | "latency-low-to-high"; "offset"?: number; "limit"?: number; "after_id"?: string; "before_id"?: string; "use_rss"?: string; "use_rss_chat_links"?: string; }; body: undefined; answer: { "data": (RetrievedModel)[]; "total_count": number; "links": { "next": string | null; }; "object": "list"; "has_more": boolean; "first_id": string | null; "last_id": string | null; }; };
  listModelEndpoints: { path: { "author": string; "slug": string; }; query: Record<string, never>; body: undefined; answer: { "data": ModelEndpoints; }; };
  listProviders: { path: Record<string, never>; query: Record<string, never>; body: undefined; answer: { "data": (Provider)[]; }; };
  getCredits: { path: Record<string, never>; query: Record<string, never>; body: undefined; answer: { "data": Credits; }; };
  listActivity: { path: Record<string, never>; query: { "date"?: string; "api_key_hash"?: string; "user_id"?: string; "workspace_id"?: string; "group_by"?: "workspace"; }; body: undefined; answer: { "data": (ActivityItem)[]; }; };
  getAnalyticsMeta: { path: Record<string, never>; query: Record<string, never>; body: undefined; answer: { "data": AnalyticsMeta; }; };
  queryAnalytics: { path: Record<string, never>; query: Record<string, never>; body: AnalyticsQuery; answer: { "data": AnalyticsResult; }; };
  listAudit: { path: Record<string, never>; query: { "offset"?: number; "limit"?: number; "resource_type"?: "api_key" | "authorization_code" | "byok_credential" | "credits" | "generation" | "guardrail" | "guardrail_assignment" | "ledger_node" | "session" | "user" | "workspace" | "workspace_budget" | "workspace_member"; "resource_id"?: string; "actor_user_id"?: string; "before"?: string; }; body: undefined; answer: { "data": (AuditEvent)[]; "total_count": number; }; };
  listOrganizationMembers: { path: Record<string, never>; query: { "offset"?: number; "limit"?: number; }; body: undefined; answer: { "data": (OrganizationMember)[]; "total_count": number; }; };
  listWorkspaces: { path: Record<string, never>; query: { "offset"?: number; "limit"?: number; }; body: undefined; answer: { "data": (Workspace)[]; "total_count": number; }; };
  createWorkspace: { path: Record<string, never>; query: Record<string, never>; body: { "name": string; "slug": string; "description"?: string | null; "default_image_model"?: string | null; "default_text_model"?: string | null; "default_provider_sort"?: "price" | "throughput" | "latency" | "exacto" | null; "io_logging_api_key_ids"?: (number)[] | null; "io_logging_sampling_rate"?: number; "include_byok_in_budgets"?: boolean; "disabled_server_tools"?: (string)[] | null; "is_data_discount_logging_enabled"?: boolean; "is_observability_broadcast_enabled"?: boolean; "is_observability_io_logging_enabled"?: boolean; "default_guardrail_id"?: string | null; }; answer: { "data": Workspace; }; };
  listWorkspaceMembers: { path: { "id": string; }; query: { "offset"?: number; "limit"?: number; }; body: undefined; answer: { "data": (WorkspaceMember)[]; "total_count": number; }; };
  addWorkspaceMembers: { path: { "id": string; }; query: Record<string, never>; body: { "user_ids": (string)[]; }; answer: { "added_count": number; "data": (WorkspaceMember)[]; }; };
  removeWorkspaceMembers: { path: { "id": string; }; query: Record<string, never>; body: { "user_ids": (string)[]; }; answer: { "removed_count": number; }; };
  listWorkspaceBudgets: { path: { "id": string; }; query: Record<string, never>; body: undefined; answer: { "data": (WorkspaceBudget)[]; "include_byok_in_budgets": boolean; }; };
  putWorkspaceBudget: { path: { "id": string; "interval": "lifetime" | "monthly" | "weekly" | "daily"; }; query: Record<string, never>; body: { "limit_usd": number; "include_byok_in_budgets"?: boolean; }; answer: { "data": WorkspaceBudget; "include_byok_in_budgets": boolean; }; };
  deleteWorkspaceBudget: { path: { "id": string; "interval": "lifetime" | "monthly" | "weekly" | "daily"; }; query: Record<string, never>; body: undefined; answer: { "deleted": true; }; };
  createKey: { path: Record<string, never>; query: Record<string, never>; body: { "name": string; "limit"?: number | null; "limit_reset"?: "daily" | "weekly" | "monthly" | null; "include_byok_in_limit"?: boolean; "expires_at"?: string | null; "creator_user_id"?: string | null; "workspace_id"?: string; "external"?: { "user": string; }; "budget_mode"?: "strict" | "soft" | null; }; answer: { "data": Key; "key": string; }; };
  listKeys: { path: Record<string, never>; query: { "offset"?: number; "limit"?: number; "include_disabled"?: string; "workspace_id"?: string; }; body: undefined; answer: { "data": (Key)[]; }; };
  updateKey: { path: { "hash": string; }; query: Record<string, never>; body: { "name"?: string; "disabled"?: boolean; "limit"?: number | null; "limit_reset"?: "daily" | "weekly" | "monthly" | null; "include_byok_in_limit"?: boolean; "budget_mode"?: "strict" | "soft" | null; }; answer: { "data": Key; }; };
  deleteKey: { path: { "hash": string; }; query: Record<string, never>; body: undefined; answer: { "deleted": true; }; };
  getSession: { path: Record<string, never>; query: Record<string, never>; body: undefined; answer: { "data": Session; }; };
  endSession: { path: Record<string, never>; query: { "everywhere"?: "true" | "false"; }; body: undefined; answer: { "deleted": true; }; };
}

export const routes: Readonly<Record<keyof Operations, readonly [method: string, path: string]>> = {
  listModels: ['GET', 'api/v1/models'],
  listModelEndpoints: ['GET', 'api/v1/models/{author}/{slug}/endpoints'],
  listProviders: ['GET', 'api/v1/providers'],
  getCredits: ['GET', 'api/v1/credits'],
  listActivity: ['GET', 'api/v1/activity'],
  getAnalyticsMeta: ['GET', 'api/v1/analytics/meta'],
  queryAnalytics: ['POST', 'api/v1/analytics/query'],
  listAudit: ['GET', 'api/v1/audit'],
  listOrganizationMembers: ['GET', 'api/v1/organization/members'],
  listWorkspaces: ['GET', 'api/v1/workspaces'],
  createWorkspace: ['POST', 'api/v1/workspaces'],
  listWorkspaceMembers: ['GET', 'api/v1/workspaces/{id}/members'],
  addWorkspaceMembers: ['POST', 'api/v1/workspaces/{id}/members/add'],
  removeWorkspaceMembers: ['POST', 'api/v1/workspaces/{id}/members/remove'],
  listWorkspaceBudgets: ['GET', 'api/v1/workspaces/{id}/budgets'],
  putWorkspaceBudget: ['PUT', 'api/v1/workspaces/{id}/budgets/{interval}'],
  deleteWorkspaceBudget: ['DELETE', 'api/v1/workspaces/{id}/budgets/{interval}'],
  createKey: ['POST', 'api/v1/keys'],
  listKeys: ['GET', 'api/v1/keys'],
  updateKey: ['PATCH', 'api/v1/keys/{hash}'],
  deleteKey: ['DELETE', 'api/v1/keys/{hash}'],
  getSession: ['GET', 'api/v1/session'],
  endSession: ['DELETE', 'api/v1/session'],
};

