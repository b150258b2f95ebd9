"""API calls by meaning, kernel families, annotations without counters: names as real files hold them."""

from __future__ import annotations

import pytest

from scopedown.trace.names import (
    ApiMeaning,
    OverheadMeaning,
    api_meaning,
    clean_api,
    is_collective,
    kernel_family,
    overhead_meaning,
    without_counters,
)


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaMemcpyAsync_v3020_ptsz", "cudaMemcpyAsync"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties"),
        ("cuLaunchKernel_ptds", "cuLaunchKernel"),
        ("cuMemAlloc_v2", "cuMemAlloc"),
        ("hipGetDevicePropertiesR0600", "hipGetDevicePropertiesR0600"),
    ],
)
def test_clean_api(name: str, clean: str) -> None:
    assert clean_api(name) == clean


MEANINGS = {
    ApiMeaning.LAUNCH: "cudaLaunchKernel cudaLaunchKernelExC cudaLaunch cudaLaunchCooperativeKernel cuLaunchKernel "
    "cuLaunchKernelEx hipLaunchKernel hipExtModuleLaunchKernel hipModuleLaunchKernel hipExtLaunchKernel cuLaunchGrid",
    ApiMeaning.GRAPH_LAUNCH: "cudaGraphLaunch cuGraphLaunch hipGraphLaunch",
    ApiMeaning.SYNC: "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cuCtxSynchronize "
    "cuStreamSynchronize cuEventSynchronize hipDeviceSynchronize hipEventSynchronize cudaThreadSynchronize",
    ApiMeaning.ALLOC: "cudaMalloc cudaFree cudaMallocAsync cudaFreeAsync cudaMallocManaged cudaHostAlloc cudaFreeHost "
    "cudaMallocHost cuMemAlloc_v2 cuMemFree_v2 cuMemAllocAsync cuMemCreate cuMemMap cuMemUnmap cuMemRelease "
    "cuMemAddressFree cuMemSetAccess cuMemHostAlloc cudaHostRegister hipMalloc hipFree hipHostMalloc "
    "hipExtMallocWithFlags",
    ApiMeaning.COPY: "cudaMemcpy cudaMemcpyAsync cudaMemcpy2DAsync cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2 "
    "hipMemcpyWithStream hipMemcpyAsync cudaMemPrefetchAsync cudaMemcpyPeerAsync",
    ApiMeaning.MEMSET: "cudaMemset cudaMemsetAsync cuMemsetD8_v2 cuMemsetD32Async hipMemsetAsync",
    ApiMeaning.MODULE: "cuModuleLoadDataEx cuModuleUnload cuLibraryLoadData cuLibraryGetKernel cuModuleGetFunction "
    "__cudaRegisterFatBinary hipModuleLoadData nvrtcCompileProgram cuLinkComplete",
    ApiMeaning.EVENT_RECORD: "cudaEventRecord cudaEventRecordWithFlags cuEventRecord hipEventRecord",
    ApiMeaning.STREAM_WAIT: "cudaStreamWaitEvent cuStreamWaitEvent hipStreamWaitEvent cuStreamWaitValue32",
    ApiMeaning.OTHER: "cudaGetDevice cudaStreamIsCapturing cuGetProcAddress_v2 cudaFuncGetAttributes cudaEventQuery "
    "cudaLaunchHostFunc cudaGraphInstantiate cuInit cudaEventCreate INVALID pthread_mutex_lock",
}


@pytest.mark.parametrize(("meaning", "name"), [(m, n) for m, names in MEANINGS.items() for n in names.split()])
def test_api_meaning(meaning: ApiMeaning, name: str) -> None:
    assert api_meaning(name) is meaning
    assert api_meaning(clean_api(name)) is meaning


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("layer 3", "layer #"),
        ("step_12", "step_#"),
        ("model.layers.17", "model.layers.#"),
        ("aten::linear, op_id = 77", "aten::linear, op_id = #"),
        ("MulBackward0, seq = 9, op_id = 12", "MulBackward0, seq = #, op_id = #"),
        ("request cmpl-7b03976a", "request #"),
        ("request r-9100 (prefill)", "request # (prefill)"),
        ("Request 5f0c8e2a, decode", "Request #, decode"),
        ("request handling", "request handling"),
        ("tensor at 0x7f3a00ff", "tensor at #"),
        ("job 30860c6e-8dbb-40bf-88ee-2fca165395fa", "job #"),
        ("execute_context_1(64)_generation_0(0)", "execute_context_#(#)_generation_#(#)"),
        ("sizes = [[1, 128], [3]]", "sizes = [[#, #], [#]]"),
        ("sm80", "sm80"),
        ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80", "fmha_cutlassF_bf16_aligned_64x128_rf_sm80"),
        ("model.py(42): forward", "model.py(42): forward"),
        ("v1.2.0", "v1.2.0"),
        ("conv1", "conv1"),
    ],
)
def test_counters_go_and_names_stay(text: str, grouped: str) -> None:
    assert without_counters(text) == grouped
    assert without_counters(grouped) == grouped


FAMILIES = [
    ("void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(T3)",
     "at::native::reduce_kernel"),
    ("void <unnamed>::softmax_warp_forward<float, float, (int)6, (bool)0>(T2 *, const T1 *, int)",
     "softmax_warp_forward"),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, int)",
     "at::native::CatArrayBatchedCopy"),
    ("void dag_lts_kernel<(int)1, (int)128>(const int *, const int *, double *)", "dag_lts_kernel"),
    ("jacobi_kernel(float *, const float *, float *, int, int, int)", "jacobi_kernel"),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(int)", "internal::gemvx::kernel"),
    ("std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
     "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)", "vllm::fused_add_rms_norm_kernel"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(Params)",
     "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16"),
    ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, 128, 128>>>(Params)",
     "flash::FlashAttnFwdSm90"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::log2_kernel_cuda(at::TensorIteratorBase&)::"
     "{lambda()#2}::operator()() const::{lambda()#1}", "at::native::vectorized_elementwise_kernel"),
    ("void fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>)",
     "fmha_cutlassF_bf16_aligned"),
    ("<unnamed>::nvfuser_pointwise_f1_c1_r0_g1(<unnamed>::Tensor<float, (int)3, (int)3>)", "nvfuser_pointwise"),
    ("nvfuser_inner_persistent_f0_c1_r0_g2", "nvfuser_inner_persistent"),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "nvjet_tst"),
    ("nvjet_sm103_tst_64x8_64x16_1x4_h_bz_TNT", "nvjet_tst"),
    ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", "nvjet_hsh"),
    ("triton_poi_fused_add_mul_silu_3", "triton_poi_fused_add_mul_silu"),
    ("triton_red_fused__to_copy_add_0d1d2d3de4c", "triton_red_fused__to_copy_add"),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_execute_kernel__5x_cublas",
     "sm80_xmma_gemm_f32f32_f32f32_f32"),
    ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", "ampere_bf16_s16816gemm_bf16"),
    ("trt_ampere_h16816gemm_64x64_ldg8_relu_stages_64x5_tn_v1", "trt_ampere_h16816gemm"),
    ("volta_sgemm_64x64_nt", "volta_sgemm"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT320x224x64_MI16x16x1_SN_LDSB0",
     "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllGather"),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Generic"),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8EEEvPT0_", "aiter::add_rmsnorm_quant_kernel"),
    ("vectorCopy(double*, int) [clone .kd]", "vectorCopy"),
    ("void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::BlockScaleQuantizationType)2, __nv_bfl",
     "tensorrt_llm::kernels::quantize_with_block_size"),
    ("vecAdd", "vecAdd"),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_kernel_family(name: str, family: str) -> None:
    assert kernel_family(name) == family
    assert kernel_family(family) == family


@pytest.mark.parametrize(
    "junk", ["(", ")", "<", ">>>>", "a<b(c", "operator()", "_Z", "_ZN99x", "::", "void ", "_3", "((("]
)
def test_kernel_family_of_junk_is_text(junk: str) -> None:
    assert isinstance(kernel_family(junk), str)


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", True),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", True),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", True),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", True),
        ("void tensorrt_llm::kernels::one_shot_all_reduce_norm_kernel<half>(Params)", True),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<half>(Params)", True),
        ("nvshmemi_barrier_all_kernel", True),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(T3)", False),
        ("void splitKreduce_kernel<float, float>(cublasSplitKParams<float>)", False),
        ("void at::native::vectorized_gather_kernel<16, long>(char*)", False),
        ("void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>(long*)", False),
        ("reduce_segments", False),
    ],
)
def test_collectives(name: str, collective: bool) -> None:
    assert is_collective(name) is collective


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("Runtime Triggered Module Loading", OverheadMeaning.MODULE),
        ("Lazy Function Loading", OverheadMeaning.MODULE),
        ("JIT compilation", OverheadMeaning.MODULE),
        ("Command Buffer Full", OverheadMeaning.COMMAND_BUFFER),
        ("Activity Buffer Request", OverheadMeaning.TOOL),
        ("CUPTI: Buffer flush", OverheadMeaning.TOOL),
        ("CUDA profiling initialization", OverheadMeaning.TOOL),
    ],
)
def test_overheads(name: str, meaning: OverheadMeaning) -> None:
    assert overhead_meaning(name) is meaning
