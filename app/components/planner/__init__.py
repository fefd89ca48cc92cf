"""What stands above the charts of Memory and Compute: the sentence that follows a slider, projector mode, exports."""
